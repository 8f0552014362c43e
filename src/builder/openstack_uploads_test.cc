// Uploads to an OpenStack (driver-openstack.md 21), beside a simulated cloud.
#include <boost/json/parse.hpp>

#include "builder/builder_fixture_for_test.h"
#include "drivers/openstack/openstack_fixture_for_test.h"

namespace nodepool::builder {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class OpenstackUploadsTest : public BuilderTest {
 protected:
  void SetUp() override {
    BuilderTest::SetUp();
    drivers_.Add(std::make_unique<drivers::ImposterDriver>(imposter_));
    imposter_.images.clear();
    providers_ = Openstack("real");
    Load();
  }
  static std::string Openstack(const std::string& name, const std::string& cloud = "vendor",
                               const std::string& more = "") {
    return "- {name: " + name + ", driver: openstack, cloud: " + cloud +
           ", diskimages: [{name: debian, meta: {os_distro: debian}}], pools: []" +
           (more.empty() ? "" : ", " + more) + "}\n";
  }
  bool AwaitReady(std::size_t count, const std::string& provider = "real") {
    return Await([&] { return Uploads(ImageState::kReady, provider).size() == count; });
  }
  std::vector<std::string> Formats() {
    std::vector<std::string> formats;
    for (const auto& [id, image] : imposter_.images)
      formats.emplace_back(image.record.at("disk_format").as_string());
    return formats;
  }
  void FailUploads(int times) {
    imposter_.Add({.method = "PUT", .path = "/image/v2/images/", .status = 500, .times = times});
  }

  // Sets the cloud's answers about an image.
  void AnswerAboutImages(const std::string& status, int times) {
    imposter_.Add({.method = "GET",
                   .path = "/image/v2/images/0",
                   .status = 200,
                   .body = "{\"status\": \"" + status + "\"}",
                   .times = times});
  }

  testing::OpenstackImposter imposter_{time_.loop(), "http://cloud.example"};
};

// O-node: metadata of the disk image, the provider's own over it.
TEST_F(OpenstackUploadsTest, AnImageCarriesTheMergedMetadata) {
  diskimages_ = "[{name: debian, metadata: {os_distro: any, made_by: us}}]";
  Load();
  Start();
  ASSERT_TRUE(AwaitReady(1));
  ASSERT_THAT(imposter_.images, SizeIs(1));
  const auto& [id, image] = *imposter_.images.begin();
  store::StoredUpload upload = Uploads(ImageState::kReady, "real").at(0);
  EXPECT_EQ(upload.record.external_id, id);
  EXPECT_EQ(image.record.at("os_distro"), "debian");
  EXPECT_EQ(image.record.at("made_by"), "us");
  EXPECT_EQ(image.record.at("nodepool_provider_name"), "real");
  EXPECT_EQ(image.record.at("nodepool_build_id"), boost::json::value(upload.id.build.build.value));
  EXPECT_EQ(image.record.at("status"), "active");
}

// B-upload-progress
TEST_F(OpenstackUploadsTest, TheRecordSaysHowFarAnUploadHasCome) {
  AnswerAboutImages("saving", 12);
  Start();
  ASSERT_TRUE(Await([&] { return !Uploads(ImageState::kUploading, "real").empty(); }));
  auto progress = [&] { return Uploads("debian", "real").at(0).record.progress; };
  EXPECT_TRUE(Await([&] { return progress() == "sending the file, 40 %"; }, 15s));
  ASSERT_TRUE(AwaitReady(1));
  EXPECT_EQ(progress(), std::nullopt);
}

// O-upload-fail
TEST_F(OpenstackUploadsTest, AnUploadThatFailsIsTriedAgain) {
  for (int i = 0; i < 2; ++i) {
    AnswerAboutImages("saving", 12);
    AnswerAboutImages("killed", 1);
  }
  Start();
  ASSERT_TRUE(Await([&] { return !Uploads(ImageState::kFailed, "real").empty(); }));
  EXPECT_TRUE(Uploads(ImageState::kReady, "real").empty());
  ASSERT_TRUE(AwaitReady(1));
  EXPECT_EQ(imposter_.Count("POST", "/image/v2/images"), 3);
  EXPECT_THAT(imposter_.images, SizeIs(1)) << "what failed is removed from the cloud";
  EXPECT_TRUE(Await([&] { return Uploads("debian", "real").size() == 1; })) << "failed records are removed";
}

// O-upload-two
TEST_F(OpenstackUploadsTest, OneProviderThatAlwaysFailsDelaysNoOther) {
  providers_ += Provider("cloud", "{name: debian}");
  Load();
  FailUploads(1'000'000);
  Start();
  EXPECT_TRUE(AwaitUploads(1));
  time_.Advance(2h);
  EXPECT_TRUE(Uploads(ImageState::kReady, "real").empty());
  EXPECT_THAT(imposter_.images, IsEmpty());
}

// O-upload-hook; every file in the test is /dev/null.
TEST_F(OpenstackUploadsTest, TheHookGetsProviderIdAndFile) {
  providers_ = Openstack("real", "vendor", "post-upload-hook: /usr/bin/hook");
  Load();
  Host& host = Start();
  ASSERT_TRUE(AwaitReady(1));
  std::string id = imposter_.images.begin()->first;
  EXPECT_THAT(host.runner.ran, Contains(ElementsAre("/usr/bin/hook", "real", id, "/dev/null")));
}

// O-upload-removal-retry: the image that the hook refused is deleted, however many attempts that takes.
TEST_F(OpenstackUploadsTest, ADeletionThatFailsIsRepeated) {
  Start();
  ASSERT_TRUE(AwaitReady(1));
  imposter_.Add(
      {.method = "DELETE", .path = "/image/v2/images/", .status = 409, .body = "in use", .times = 3});
  providers_ = Provider("cloud", "{name: debian}");
  providers_ += "- {name: real, driver: openstack, cloud: vendor, diskimages: [], pools: []}\n";
  Load();
  time_.Advance(150s);
  EXPECT_THAT(imposter_.images, SizeIs(1));
  EXPECT_THAT(Uploads("debian", "real"), SizeIs(1)) << "the record stays as long as the image";
  EXPECT_TRUE(Await([&] { return imposter_.images.empty() && Uploads("debian", "real").empty(); }, 5min));
}

// O-hard-fail: what a builder that died during an upload leaves is removed.
TEST_F(OpenstackUploadsTest, TheUploadOfADeadBuilderIsMadeAgain) {
  imposter_.Add({.method = "PUT", .path = "/image/v2/images/", .hangs = true});
  Host& dead = Start("nb1");
  ASSERT_TRUE(Await([&] {
    return !Uploads("debian", "real").empty() && Uploads("debian", "real").at(0).record.external_id;
  }));
  store::UploadKey abandoned = Uploads("debian", "real").at(0).id;
  imposter_.Add(
      {.method = "DELETE", .path = "/image/v2/images/", .status = 500});  // a dead builder removes nothing
  Kill(dead);
  EXPECT_THAT(imposter_.images, SizeIs(1));
  Restart(dead);
  ASSERT_TRUE(AwaitReady(1));
  EXPECT_TRUE(Await([&] { return !time_.Run(store_->images.ReadUpload(abandoned)); }));
  EXPECT_TRUE(Await([&] { return imposter_.images.size() == 1; }));
}

// O-vhd
TEST_F(OpenstackUploadsTest, ACloudGetsTheFormatThatItWants) {
  providers_ = Openstack("real", "vhd");
  Load();
  Start();
  ASSERT_TRUE(AwaitReady(1));
  EXPECT_THAT(Formats(), ElementsAre("vhd"));
}

// O-vhd-beside-qcow
TEST_F(OpenstackUploadsTest, CloudsThatWantDifferentFormats) {
  providers_ = Openstack("a", "vhd") + Openstack("b");
  Load();
  Start();
  ASSERT_TRUE(AwaitReady(1, "a"));
  ASSERT_TRUE(AwaitReady(1, "b"));
  EXPECT_THAT(Formats(), ::testing::UnorderedElementsAre("vhd", "qcow2"));
}

// O-format-cleanup: files that every provider has are removed, except those to be retained.
TEST_F(OpenstackUploadsTest, FilesThatAreUploadedAreRemoved) {
  diskimages_ = "[{name: debian, formats: [raw], delete-after-upload: true, keep-formats: [raw]}]";
  Load();
  Host& host = Start();
  auto has = [&host](const std::string& end) {
    return std::ranges::any_of(host.files.names,
                               [&end](const std::string& name) { return name.ends_with(end); });
  };
  ASSERT_TRUE(Await([&] { return has(".qcow2"); }));
  ASSERT_TRUE(AwaitReady(1));
  EXPECT_TRUE(Await([&] { return !has(".qcow2"); }));
  EXPECT_TRUE(has(".raw"));
}

}  // namespace
}  // namespace nodepool::builder
