#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "base/tar_gz_stream.h"
#include "drivers/gce/compute/quota.h"
#include "drivers/gce/gce_fixture_for_test.h"

namespace nodepool::drivers::gce {

// Limits of a region and what others use of them (driver-gce.md 11).

namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class GceQuotaTest : public GceTest {
 protected:
  Resources Need() { return adapter->QuotaForLabel(*label).resources(); }
  Resources Limits() { return time.Run(adapter->QuotaLimits()).resources(); }
  double OfOthers(const std::string& resource) { return adapter->UsedByOthers()->Get(resource); }
};

TEST(CpuMetricTest, EachFamilyCountsUnderItsOwn) {
  for (const char* type : {"n1-standard-1", "e2-medium", "f1-micro", "g1-small", "custom-2-4096"})
    EXPECT_EQ(CpuMetric(type, false, false), "CPUS") << type;
  EXPECT_EQ(CpuMetric("n2-standard-2", false, true), "N2_CPUS");
  EXPECT_EQ(CpuMetric("n2d-custom-2-4096", false, false), "N2D_CPUS");
  EXPECT_EQ(CpuMetric("c3-standard-4", true, true), "PREEMPTIBLE_CPUS");
  EXPECT_EQ(CpuMetric("c3-standard-4", true, false), "C3_CPUS");
}

// GCE-40, GCE-41
TEST_F(GceQuotaTest, LimitsAndWhatOthersUse) {
  label->volume_type = "pd-ssd";
  google.quotas = {{"CPUS", {24, 12}},           {"INSTANCES", {50, 1}},     {"CPUS_ALL_REGIONS", {32, 2}},
                   {"IN_USE_ADDRESSES", {8, 0}}, {"SSD_TOTAL_GB", {500, 0}}, {"NETWORKS", {5, 5}}};
  Start();
  EXPECT_EQ(Need(), (Resources{{"instances", 1},
                               {"cores", 2},
                               {"ram", 4096},
                               {"CPUS", 2},
                               {"CPUS_ALL_REGIONS", 2},
                               {"IN_USE_ADDRESSES", 1},
                               {"SSD_TOTAL_GB", 10}}));
  Resources limits = Limits();
  EXPECT_EQ(limits.at("CPUS"), 24);
  EXPECT_EQ(limits.at("instances"), 50);
  EXPECT_EQ(limits.at("CPUS_ALL_REGIONS"), 32);
  EXPECT_FALSE(limits.contains("NETWORKS"));
  EXPECT_EQ(OfOthers("CPUS"), 12);
  Launch();
  google.quotas["CPUS"].second = 14;
  time.Advance(std::chrono::seconds(10));
  Limits();
  EXPECT_EQ(OfOthers("CPUS"), 12) << "our own node is not others'";
}

// GCE-35, GCE-42
TEST_F(GceQuotaTest, SpotHasALimitOfItsOwnOnlyWhereThereIsOne) {
  label->use_spot = true;
  google.quotas["PREEMPTIBLE_CPUS"] = {0, 0};
  Start();
  EXPECT_TRUE(Need().contains("CPUS"));
  google.quotas["PREEMPTIBLE_CPUS"] = {8, 0};
  EXPECT_EQ(Limits().at("PREEMPTIBLE_CPUS"), 8);
  EXPECT_TRUE(Need().contains("PREEMPTIBLE_CPUS"));
  EXPECT_FALSE(Need().contains("CPUS"));
}

// GCE-43
TEST_F(GceQuotaTest, WithoutFiguresGooglesRefusalsAreTheLimit) {
  FailNext("regions.get", 403, "forbidden", 1000);
  Start();
  Launch();
  EXPECT_THAT(results, ::testing::ElementsAre("ready"));
  EXPECT_THAT(time.Run(adapter->FindFaults(*config)), Contains(HasSubstr("quotas: ")));
}

// GCE-62
TEST_F(GceQuotaTest, AnIdleProviderAsksLittle) {
  Start();
  time.Advance(std::chrono::minutes(30));
  EXPECT_LE(google.Count("instances.list"), 7);
  EXPECT_LE(google.Count("regions.get"), 7);
  EXPECT_EQ(google.Count("zoneOperations.list"), 0);
}

TEST_F(GceQuotaTest, WhatIsWrongIsFound) {
  config->cloud_images["other"] = {};
  config->cloud_images["other"].name = "other";
  config->cloud_images["other"].project = "debian-cloud";
  config->cloud_images["other"].family = "debian-99";
  Start();
  EXPECT_THAT(time.Run(adapter->FindFaults(*config)),
              ::testing::ElementsAre(HasSubstr("cloud image other: project debian-cloud has no image")));
}

// Uploads of images (driver-gce.md 13, 16).

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr std::size_t kGibibyte = std::size_t{1} << 30;

std::string Unzipped(const std::string& bytes, std::size_t most) {
  z_stream zlib{};
  inflateInit2(&zlib, 15 + 16);
  std::string plain(most, '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  zlib.avail_in = static_cast<uInt>(bytes.size());
  zlib.next_out = reinterpret_cast<Bytef*>(plain.data());
  zlib.avail_out = static_cast<uInt>(most);
  int ended = inflate(&zlib, Z_FINISH);
  EXPECT_EQ(ended, Z_STREAM_END);
  plain.resize(most - zlib.avail_out);
  inflateEnd(&zlib);
  return plain;
}

class GceImagesTest : public GceTest {
 protected:
  void SetUp() override {
    GceTest::SetUp();
    path_ = ::testing::TempDir() + "gce-image-" + std::to_string(getpid());
    std::ofstream(path_) << std::string(100'000, 'x') << "end";
    config->bucket = "bucket";
    auto image = std::make_shared<GceDiskImage>();
    image->name = ImageName("debian");
    config->diskimages[image->name] = image;
  }
  void TearDown() override {
    GceTest::TearDown();
    std::filesystem::remove(path_);
  }
  driver::ImageUploadParameters Upload() {
    driver::ImageUploadParameters upload;
    upload.image = config->diskimages.at(ImageName("debian"));
    upload.name = "debian-1700000000";
    upload.filename = path_;
    upload.format = "raw";
    upload.metadata = {{"nodepool_provider_name", "gce"},
                       {"nodepool_build_id", "b1"},
                       {"nodepool_upload_id", "0000000001"},
                       {"nodepool_attempt", "0123456789abcdef0123456789abcdef"}};
    upload.announce = [this](std::string id) { return Note(announced_, std::move(id)); };
    return upload;
  }
  static Task<> Note(std::string& announced, std::string id) {
    announced = std::move(id);
    co_return;
  }
  // What is sent of the first object.
  static Task<> KeepObject(Loop& loop, testing::GceImposter& google, std::string& sent) {
    while (google.objects.empty() || !google.objects.begin()->second.is_complete)
      co_await loop.SleepFor(std::chrono::milliseconds(1));
    sent = google.objects.begin()->second.bytes;
  }
  std::string Run() { return time.Run(adapter->UploadImage(Upload()), std::chrono::hours(10)); }
  std::string Fails() {
    try {
      Run();
    } catch (const Error& error) {
      return error.message();
    }
    return "no error";
  }

  std::string path_;
  std::string announced_;
};

// GCE-57
TEST_F(GceImagesTest, TheFileBecomesAnArchiveAndAnImage) {
  Start();
  std::string sent;
  google.faults.push_back({"images.insert", 503, "backendError", "later", 1});
  TaskGroup group(time.loop(), log::Logger("test"));
  group.Spawn("keep", KeepObject(time.loop(), google, sent));
  EXPECT_EQ(Run(), "debian-1700000000");
  time.Run(group.Stop());
  std::string archive = Unzipped(sent, kGibibyte + 4096);
  EXPECT_EQ(archive.size(), kGibibyte + 1536);
  EXPECT_THAT(archive.substr(0, 512), StartsWith("disk.raw"));
  EXPECT_EQ(archive.substr(0, 512), TarHeader("disk.raw", kGibibyte));
  EXPECT_EQ(archive.substr(512 + 99'998, 5), "xxend");
  EXPECT_THAT(google.objects, IsEmpty());
  const boost::json::object& image = google.images.at("debian-1700000000");
  EXPECT_EQ(image.at("family"), "debian");
  EXPECT_EQ(image.at("labels").at("nodepool_upload_id"), "0000000001");
  EXPECT_THAT(announced_, StartsWith("unfinished:b1:0000000001:0123456789abcdef0123456789abcdef:debian-"));
  auto listed = time.Run(adapter->ListImages());
  ASSERT_THAT(listed, SizeIs(1));
  EXPECT_EQ(listed.front().metadata.at("nodepool_build_id"), "b1");
}

// GCE-58
TEST_F(GceImagesTest, AnUploadGoesOnAfterFaults) {
  Start();
  FailNext("objects.part", 503, "backendError", 2);
  EXPECT_EQ(Run(), "debian-1700000000");
  EXPECT_EQ(google.Count("objects.insert"), 1);
}

// GCE-58
TEST_F(GceImagesTest, ALostUploadBeginsAgain) {
  Start();
  FailNext("objects.part", 410, "uploadBroken", 1);
  EXPECT_EQ(Run(), "debian-1700000000");
  EXPECT_EQ(google.Count("objects.insert"), 2);
}

// GCE-58
TEST_F(GceImagesTest, AFailedImportLeavesNothing) {
  Start();
  FailNext("images.insert", 400, "invalid", 1, "The tar archive is not valid.");
  EXPECT_THAT(Fails(), HasSubstr("The tar archive is not valid."));
  EXPECT_THAT(google.objects, IsEmpty());
  EXPECT_THAT(google.images, IsEmpty());
}

TEST_F(GceImagesTest, AnImageOfTheSameNameIsSomebodyElses) {
  Start();
  google.images["debian-1700000000"] = {{"name", "debian-1700000000"}, {"status", "READY"}};
  EXPECT_THAT(Fails(), HasSubstr("already exists"));
  EXPECT_THAT(google.images, SizeIs(1));
  time.Run(adapter->DeleteImage("debian-1700000000"));
  EXPECT_THAT(google.images, SizeIs(1)) << "it has no mark of this provider";
}

// GCE-16
TEST_F(GceImagesTest, ALostAnswerOfTheImportIsFound) {
  Start();
  google.faults.push_back({"images.insert", 0, "", "", 1, true});
  EXPECT_EQ(Run(), "debian-1700000000");
}

// GCE-59
TEST_F(GceImagesTest, WhatAKilledBuilderLeavesIsRemovedByItsId) {
  Start();
  Run();
  google.objects["debian-0000000001-0123456789ab.tar.gz"].is_complete = true;
  time.Run(adapter->DeleteImage(announced_));
  EXPECT_THAT(google.objects, IsEmpty());
  EXPECT_THAT(google.images, IsEmpty());
  time.Run(adapter->DeleteImage(announced_));
  time.Run(adapter->DeleteImage("debian-1700000000"));
}

TEST_F(GceImagesTest, NamesThatGoogleRefusesAreRefusedAtOnce) {
  Start();
  driver::ImageUploadParameters upload = Upload();
  upload.name = "Debian_1";
  EXPECT_THROW(time.Run(adapter->UploadImage(upload)), Error);
  EXPECT_THAT(google.calls, IsEmpty());
}

// GCE-59
TEST_F(GceImagesTest, OldObjectsAndImagesAreSearchedForLeaks) {
  Start();
  Run();
  boost::json::object marks{{"nodepool_provider_name", "gce"}};
  for (const char* created : {"2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"}) {
    std::string name = std::string("debian-000000000") + created[1] + "-0123456789ab.tar.gz";
    google.objects[name] = {"", {{"name", name}, {"timeCreated", created}, {"metadata", marks}}, true};
  }
  auto resources = time.Run(adapter->ListResources());
  ASSERT_THAT(resources, SizeIs(2));
  EXPECT_EQ(resources[0].type, "image");
  EXPECT_EQ(resources[1].id, "debian-0000000000-0123456789ab.tar.gz");
  for (auto& resource : resources) time.Run(adapter->DeleteResource(resource));
  EXPECT_THAT(google.images, IsEmpty());
}

}  // namespace

}  // namespace nodepool::drivers::gce
