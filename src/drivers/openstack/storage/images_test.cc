#include "drivers/openstack/storage/images.h"

#include <filesystem>
#include <fstream>

#include "base/json_fields.h"
#include "drivers/openstack/openstack_fixture_for_test.h"

namespace nodepool::drivers::openstack {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class ImagesTest : public OpenstackTest {
 protected:
  void SetUp() override {
    OpenstackTest::SetUp();
    config->cloud_config.disable_vendor_agent = {{"vm_mode", "hvm"}};
    upload.name = "debian-1";
    upload.filename = "/dev/null";
    upload.format = "qcow2";
    upload.metadata = {{"nodepool_build_id", "b1"},
                       {"nodepool_upload_id", "0000000001"},
                       {"min_disk", "10"},
                       {"hw_scsi_model", "virtio-scsi"},
                       {"count", 3},
                       {"is_protected", true},
                       {"nothing", nullptr}};
    upload.md5 = "m";
    upload.sha256 = "s";
    upload.timeout = 1h;
  }
  driver::ImageUploadParameters upload;
};

TEST_F(ImagesTest, PropertiesAreAsTheServiceWantsThem) {
  boost::json::object sent = ImageProperties(upload, config->cloud_config);
  EXPECT_EQ(boost::json::serialize(sent),
            R"({"vm_mode":"hvm","nodepool_build_id":"b1","nodepool_upload_id":"0000000001","min_disk":10,)"
            R"("hw_scsi_model":"virtio-scsi","count":"3","protected":true,"nothing":null,"name":"debian-1",)"
            R"("disk_format":"qcow2","container_format":"bare","visibility":"private",)"
            R"("owner_specified.openstack.md5":"m","owner_specified.openstack.sha256":"s",)"
            R"("owner_specified.openstack.object":"images/debian-1"})");
}

// An image of the same name and contents may be another installation's, which deletes it when it likes.
TEST_F(ImagesTest, AreUploadedAndDeleted) {
  Start();
  std::string id = time.Run(adapter->UploadImage(upload));
  EXPECT_EQ(TextIn(imposter.images.at(id).record, "status"), "active");
  EXPECT_NE(time.Run(adapter->UploadImage(upload)), id);
  time.Run(adapter->DeleteImage(id));
  time.Run(adapter->DeleteImage(id));
  EXPECT_FALSE(imposter.images.contains(id));
}

TEST_F(ImagesTest, AreImportedWhereTheCloudWantsIt) {
  config->cloud_config.imports_images = true;
  Start();
  std::string id = time.Run(adapter->UploadImage(upload));
  EXPECT_EQ(TextIn(imposter.images.at(id).record, "status"), "active");
  EXPECT_EQ(imposter.Count("PUT", "/image/v2/images/" + id + "/stage"), 1);
  EXPECT_EQ(imposter.LastCall("POST", "/image/v2/images/" + id + "/import")->body,
            R"({"method":{"name":"glance-direct"}})");
}

TEST_F(ImagesTest, AnImportThatFailsIsRemoved) {
  config->cloud_config.imports_images = true;
  imposter.fails_imports = true;
  Start();
  std::size_t before = imposter.images.size();
  try {
    time.Run(adapter->UploadImage(upload));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("import of image"));
  }
  EXPECT_EQ(imposter.images.size(), before);
}

TEST_F(ImagesTest, WhatFailsIsRemoved) {
  Start();
  std::size_t before = imposter.images.size();
  imposter.Add(
      {.method = "PUT", .path = "/image/v2/images", .status = 413, .body = "Image storage limit exceeded"});
  try {
    time.Run(adapter->UploadImage(upload));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("storage limit"));
  }
  EXPECT_EQ(imposter.images.size(), before);
}

TEST_F(ImagesTest, AnImageThatIsKilledIsAFailure) {
  Start();
  std::size_t before = imposter.images.size();
  imposter.Add(
      {.method = "GET", .path = "/image/v2/images/", .status = 200, .body = R"({"status": "killed"})"});
  EXPECT_THROW(time.Run(adapter->UploadImage(upload)), Error);
  EXPECT_EQ(imposter.images.size(), before);
}

// The service's record, once the image is active, against what was sent: MD5 "m", SHA-256 "s", two bytes.
TEST_F(ImagesTest, WhatTheServiceStoredIsComparedWithWhatWasSent) {
  Start();
  std::size_t before = imposter.images.size();
  auto store = [&](std::string fields) {
    imposter.Add({.method = "GET",
                  .path = "/image/v2/images/",
                  .status = 200,
                  .body = R"({"id": "i", "status": "active", )" + fields + "}"});
    try {
      time.Run(adapter->UploadImage(upload));
    } catch (const Error& error) {
      return error.message();
    }
    return std::string();
  };
  EXPECT_THAT(store(R"("checksum": "0123")"), HasSubstr("with the MD5 checksum 0123 in place of m"));
  EXPECT_THAT(store(R"("os_hash_algo": "sha256", "os_hash_value": "0123")"),
              HasSubstr("with the SHA-256 checksum 0123 in place of s"));
  EXPECT_THAT(store(R"("size": 7)"), HasSubstr("with the size 7 in place of 2"));
  EXPECT_EQ(imposter.images.size(), before) << "they are removed";
  EXPECT_EQ(store(R"("checksum": "M", "size": 2, "os_hash_algo": "sha256", "os_hash_value": "S")"), "");
  EXPECT_EQ(store(R"("checksum": null, "size": null, "os_hash_algo": "sha512", "os_hash_value": "x")"), "");
  upload.md5 = upload.sha256 = std::nullopt;
  EXPECT_EQ(store(R"("checksum": "0123", "os_hash_algo": "sha256", "os_hash_value": "0123")"), "");
}

TEST_F(ImagesTest, AnImportMayConvertTheFile) {
  config->cloud_config.imports_images = true;
  Start();
  imposter.Add({.method = "GET",
                .path = "/image/v2/images/",
                .status = 200,
                .body = R"({"status": "active", "checksum": "0123", "size": 7})"});
  EXPECT_NE(time.Run(adapter->UploadImage(upload)), "");
}

TEST_F(ImagesTest, AnUploadThatIsStoppedIsRemoved) {
  Start();
  std::size_t before = imposter.images.size();
  imposter.Add({.method = "PUT", .path = "/image/v2/images", .hangs = true});
  TaskGroup tasks(time.loop(), log::Logger("test"));
  auto run = [](OpenstackAdapter& adapter, driver::ImageUploadParameters upload) -> Task<> {
    co_await adapter.UploadImage(std::move(upload));
  };
  tasks.Spawn("upload", run(*adapter, upload));
  time.Advance(10s);
  EXPECT_EQ(imposter.images.size(), before + 1);
  time.Run(tasks.Stop());
  EXPECT_EQ(imposter.images.size(), before);
}

TEST_F(ImagesTest, TheIdIsAnnouncedBeforeTheFileIsSent) {
  Start();
  std::string announced;
  upload.announce = [&](const std::string& id) {
    announced = id;
    EXPECT_EQ(imposter.Count("PUT", "/image/v2/images"), 0);
    return time.loop().SleepFor({});
  };
  EXPECT_EQ(time.Run(adapter->UploadImage(upload)), announced);
  EXPECT_TRUE(imposter.images.contains(announced));
}

TEST_F(ImagesTest, AnImageThatCannotBeNotedIsRemoved) {
  Start();
  std::size_t before = imposter.images.size();
  upload.announce = [](std::string) -> Task<> {
    throw Error(Verdict::kLostSession, "no record");
    co_return;
  };
  EXPECT_THROW(time.Run(adapter->UploadImage(upload)), Error);
  EXPECT_EQ(imposter.Count("PUT", "/image/v2/images"), 0);
  EXPECT_EQ(imposter.images.size(), before);
}

TEST_F(ImagesTest, AProtectedImageStays) {
  Start();
  imposter.Add(
      {.method = "DELETE", .path = "/image/v2/images", .status = 403, .body = R"({"message": "protected"})"});
  EXPECT_THROW(time.Run(adapter->DeleteImage("x")), Error);
}

}  // namespace
}  // namespace nodepool::drivers::openstack
