#include "drivers/openstack/storage/images.h"

#include <filesystem>
#include <fstream>

#include "base/json_fields.h"
#include "drivers/openstack/openstack_fixture_for_test.h"

namespace nodepool::drivers::openstack {

// Cloud images that labels name, and that may not exist.

namespace {

using namespace std::chrono_literals;
using driver::Readiness;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CloudImagesTest : public OpenstackTest {
 protected:
  void SetUp() override {
    OpenstackTest::SetUp();
    config->cloud_images["debian"].external_name = "trixie";
  }
  Readiness Ask() { return provider->LabelReady(*label); }
  int Refreshes() const { return imposter.Count("GET", "/image/v2/images"); }
};

// A new image is found soon; one that never appears costs few calls.
TEST_F(CloudImagesTest, AMissingImageIsCheckedAgainAfterGrowingPauses) {
  log::Capture capture;
  Start();
  EXPECT_EQ(Ask(), Readiness::kNotReady);
  std::vector<int> counts;
  for (Duration pause : {5s, 10s, 20s, 40s, 80s}) {
    time.Advance(pause - 1s);
    counts.push_back(Refreshes());
    time.Advance(1s);
  }
  EXPECT_THAT(counts, ElementsAre(0, 1, 2, 3, 4));
  imposter.ClearCalls();
  time.Advance(1h);
  EXPECT_GE(Refreshes(), 12);
  EXPECT_LE(Refreshes(), 26) << "each five minutes, and each time the quota is read";
  EXPECT_EQ(capture.Count("has no active image trixie"), 1) << "it is logged once";
  imposter.AddImage("trixie");
  int before = capacity_changes;
  time.Advance(300s);
  EXPECT_GT(capacity_changes, before) << "waiting requests are evaluated again";
  EXPECT_EQ(Ask(), Readiness::kReady);
  imposter.ClearCalls();
  time.Advance(1h);
  EXPECT_EQ(Refreshes(), 0) << "existing images are not checked again";
}

TEST_F(CloudImagesTest, OneCallChecksAllMissingImages) {
  config->cloud_images["second"] = {{.name = "second", .external_name = "sid, \"not\" quoted"}};
  config->cloud_images["third"] = {{.name = "third", .external_name = "bookworm"}};
  config->cloud_images["fourth"] = {{.name = "fourth", .external_name = "known"}};
  imposter.AddImage("known");
  Start();
  time.Advance(5s);
  EXPECT_EQ(Refreshes(), 1);
  EXPECT_EQ(imposter.LastCall("GET", "/image/v2/images")->Parameter("name"), "") << "it cannot be quoted";
  imposter.AddImage("sid, \"not\" quoted");
  time.Advance(10s);
  EXPECT_EQ(Refreshes(), 2);
  imposter.AddImage("trixie");
  time.Advance(20s);
  EXPECT_EQ(Refreshes(), 3);
  EXPECT_EQ(imposter.LastCall("GET", "/image/v2/images")->Parameter("name"), R"(in:"bookworm","trixie")");
  EXPECT_EQ(Ask(), Readiness::kReady);
}

// drivers.md 5.12
TEST_F(CloudImagesTest, ASecondLookFindsWhatAppearedRightAfterTheFirst) {
  Start();
  EXPECT_EQ(Ask(), Readiness::kNotReady);
  imposter.AddImage("trixie");
  time.Advance(1s);
  EXPECT_EQ(Ask(), Readiness::kNotReady) << "it was so a second ago";
  time.Run(provider->LookAgain());
  EXPECT_EQ(Ask(), Readiness::kReady);
}

TEST_F(CloudImagesTest, ASecondLookFindsNewFlavors) {
  config->cloud_images["debian"].external_name = "debian";
  label->flavor_name = "m9.new";
  Start();
  EXPECT_THROW(provider->QuotaForLabel(*label), Error);
  imposter.flavors["new"] = {"m9.new", 3, 1024};
  time.Run(provider->LookAgain());
  EXPECT_EQ(Ask(), Readiness::kReady);
  EXPECT_EQ(provider->QuotaForLabel(*label).Get("cores"), 3);
}

// A request comes long after the last refresh: it waits for a new one.
TEST_F(CloudImagesTest, NoRequestIsDeclinedOnAnOldResult) {
  Start();
  time.Advance(5s + 10s + 20s);
  imposter.ClearCalls();
  time.Advance(4s);
  EXPECT_EQ(Ask(), Readiness::kNotReady) << "it was so four seconds ago";
  EXPECT_EQ(Refreshes(), 0);
  imposter.AddImage("trixie");
  time.Advance(1s);
  int before = capacity_changes;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Ask(), Readiness::kUnknown);
  time.Advance(100ms);
  EXPECT_EQ(Refreshes(), 1);
  EXPECT_GT(capacity_changes, before);
  EXPECT_EQ(Ask(), Readiness::kReady);
}

TEST_F(CloudImagesTest, FrequentQueriesCauseOneRefreshInFiveSeconds) {
  Start();
  imposter.ClearCalls();
  for (int i = 0; i < 600; ++i) {
    time.Advance(100ms);
    Ask();
  }
  EXPECT_LE(Refreshes(), 12);
  time.Advance(100ms);
  EXPECT_EQ(Ask(), Readiness::kNotReady);
}

// O-az-change: cached images are looked up again, too.
TEST_F(CloudImagesTest, AfterARefusalTheImageIsUnknown) {
  std::string id = imposter.AddImage("trixie");
  Start();
  Launch();
  imposter.images.erase(id);
  imposter.Add({.method = "POST", .path = "/compute/v2.1/servers", .status = 400, .body = "no such image"});
  LaunchFails();
  EXPECT_EQ(Ask(), Readiness::kNotReady) << "the next attempts have checked for it";
  imposter.AddImage("trixie");
  time.Advance(5s);
  Launch();
}

TEST_F(CloudImagesTest, AnImageServiceThatFailsIsCalledAgain) {
  imposter.AddImage("trixie");
  imposter.Add({.method = "GET", .path = "/image/v2/images", .status = 500});
  Start();
  EXPECT_EQ(Ask(), Readiness::kUnknown) << "no request is declined for that";
  time.Advance(6s);
  EXPECT_EQ(Ask(), Readiness::kReady);
}

// D-97: names are exact, and two of one name are an error.
TEST_F(CloudImagesTest, TwoOfOneName) {
  imposter.AddImage("trixie");
  std::string twin = imposter.AddImage("trixie");
  Start();
  EXPECT_EQ(Ask(), Readiness::kNotReady);
  EXPECT_THAT(LaunchFails().message(), HasSubstr("Multiple matches found for image trixie"));
  imposter.images.at(twin).record["status"] = "deactivated";
  time.Advance(1min);
  EXPECT_EQ(Ask(), Readiness::kReady);
}

TEST_F(CloudImagesTest, ANameThatIsAnId) {
  config->cloud_images["debian"].external_name = imposter.images.begin()->first;
  Start();
  EXPECT_EQ(Ask(), Readiness::kReady);
  Launch();
  EXPECT_EQ(TextIn(LastServerRequest(), "imageRef"), imposter.images.begin()->first);
}

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
