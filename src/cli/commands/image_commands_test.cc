#include <gmock/gmock.h>
#include <sys/stat.h>

#include <boost/json/parse.hpp>
#include <fstream>

#include "async/task_group.h"
#include "base/testing/test_environment.h"
#include "cli/fixture_for_test.h"

namespace nodepool::cli {
namespace {

using ::testing::HasSubstr;

class ImageCommandTest : public CommandTest {
 protected:
  static constexpr const char* kBuild = "0123456789abcdef0123456789abcdef";

  std::string Data(const std::string& path) { return zk_.tree().Get(path)->data; }
  void PutBuild(const std::string& state = "ready") {
    Put(build_path_, R"({"state": ")" + state +
                         R"(", "state_time": 1699999939, "builder": "nb01", "formats": "raw,qcow2"})");
  }
  void PutUpload(const std::string& state = "ready") {
    Put(upload_path_, R"({"state": ")" + state +
                          R"(", "state_time": 1699999990.5, "external_id": "x", "external_name": "n"})");
  }
  store::UploadKey Key() {
    return {{ImageName("deb-12"), BuildId(kBuild)}, ProviderName("cloud"), UploadId("0000000001")};
  }
  // The reason why the command is refused, which ends with status 1.
  std::string Refused(std::vector<std::string> words) {
    out_.str("");
    EXPECT_EQ(Run(std::move(words)), 1);
    EXPECT_EQ(out_.str(), "");
    return log_.records().empty() ? "" : log_.records().back().text;
  }
  // Removes the request, as a builder does.
  void ServeRequest() { zk_.tree().Delete({"/nodepool/images/deb-12/request-build", -1}, 0); }
  void Erase(const std::string& path) {
    zk::Result<zk::Children> children = zk_.tree().GetChildren(path);
    for (const std::string& child : children->names) Erase(path + "/" + child);
    zk_.tree().Delete({path, -1}, 0);
  }
  void Configure(bool is_paused = false) {
    config::DiskImage& image = config_->common.diskimages[ImageName("deb-12")];
    image.name = ImageName("deb-12");
    image.is_paused = is_paused;
  }

  void ConfigureProviders(const std::vector<std::string>& names) {
    Configure();
    for (const std::string& name : names) {
      auto provider = std::make_shared<driver::ProviderConfig>();
      provider->name = ProviderName(name);
      provider->manages_images = true;
      provider->diskimages[ImageName("deb-12")] = std::make_shared<driver::ProviderDiskImage>();
      auto label = std::make_shared<driver::LabelConfig>();
      label->diskimage = ImageName("deb-12");
      auto pool = std::make_shared<driver::PoolConfig>();
      pool->labels[LabelName("small")] = std::move(label);
      provider->pools[PoolName("main")] = std::move(pool);
      config_->providers[provider->name] = std::move(provider);
    }
  }

  std::string build_path_ = std::string("/nodepool/images/deb-12/builds/") + kBuild;
  std::string upload_path_ = build_path_ + "/providers/cloud/images/0000000001";
};

// operations.5.4
TEST_F(ImageCommandTest, Listings) {
  PutBuild();
  PutUpload();
  Put("/nodepool/images/deb-12/builds/broken", "{");
  std::uint64_t before = our_writes();
  EXPECT_THAT(Shown({"dib-image-list"}),
              HasSubstr(std::string("| deb-12-") + kBuild +
                        " | deb-12 | nb01    | qcow2,raw | ready | 00:00:01:01 |"));
  EXPECT_EQ(ShownAsJson({"image-list"}),
            std::string(R"([{"id":")") + kBuild +
                R"(","upload_id":"0000000001","provider":"cloud","image":"deb-12","external_name":"n",)"
                R"("external_id":"x","state":"ready","age":10,"state_since":1699999990}])"
                "\n");
  EXPECT_THAT(Shown({"image-status"}), HasSubstr("| deb-12 | False  |               |                   |"));
  EXPECT_EQ(log_.Count("broken"), 3);
  EXPECT_EQ(our_writes(), before);
}

// B-cli-pause, B-cli-status, operations.16.6
TEST_F(ImageCommandTest, PausedAndAskedFor) {
  Configure();
  EXPECT_EQ(Run({"image-pause", "deb-12"}), 1);
  EXPECT_EQ(log_.Count("There is no image deb-12"), 1);
  PutBuild();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Shown({"image-pause", "deb-12"}), "");
  EXPECT_THAT(Shown({"dib-image-list"}), HasSubstr("| paused |"));
  EXPECT_EQ(Shown({"image-build", "deb-12"}), "");
  EXPECT_THAT(Shown({"image-status"}), HasSubstr("| deb-12 | True   | pending       | 00:00:00:00"));
  auto lock = time_.Run(others_.images.TryLock(ImageName("deb-12")));
  EXPECT_THAT(Shown({"image-status"}), HasSubstr("| building "));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Shown({"image-unpause", "deb-12"}), "");
  EXPECT_EQ(Refused({"image-unpause", "nope"}), "nope is not configured, and there are no records of it");
  EXPECT_THAT(Shown({"dib-image-list"}), HasSubstr("| ready |"));
}

// operations.16.6, B-build-pause
TEST_F(ImageCommandTest, OnlyWhatIsConfiguredAndNotPausedCanBeAskedFor) {
  EXPECT_EQ(Run({"image-build", "deb-12"}), 1);
  Configure(true);
  EXPECT_EQ(Run({"image-build", "deb-12"}), 1);
  EXPECT_FALSE(Exists("/nodepool"));
}

// A command that waits, while the test acts as the builder.
struct Waiting {
  Waiting(testing::VirtualTime& t, Task<int> command) : time(t), tasks(t.loop(), log::Logger("test")) {
    tasks.Spawn("wait", Run(std::move(command), status));
    time.Advance(std::chrono::seconds(5));
  }
  static Task<> Run(Task<int> command, std::optional<int>& status) { status = co_await std::move(command); }

  testing::VirtualTime& time;
  std::optional<int> status;
  TaskGroup tasks;
};

TEST_F(ImageCommandTest, WaitsUntilTheBuildIsReadyAndTellsOfProgress) {
  Configure();
  PutBuild();
  Waiting waiting(time_, Command({"image-build", "deb-12", "--wait"}));
  EXPECT_TRUE(Exists("/nodepool/images/deb-12/request-build"));
  std::string build = "/nodepool/images/deb-12/builds/fedcba9876543210fedcba9876543210";
  std::string name = "Build deb-12-fedcba9876543210fedcba9876543210";
  Put(build, R"({"state": "building", "state_time": 1, "builder": "nb01"})");
  time_.Advance(std::chrono::seconds(5));
  EXPECT_THAT(out_.str(), HasSubstr(name + ": building on nb01, log /"));
  Put(build, R"({"state": "failed", "state_time": 1})");
  time_.Advance(std::chrono::seconds(5));
  EXPECT_THAT(out_.str(), HasSubstr(name + ": failed; the builder tries again\n"));
  EXPECT_FALSE(waiting.status);
  ServeRequest();
  time_.Advance(std::chrono::seconds(5));
  EXPECT_EQ(waiting.status, 0);
}

TEST_F(ImageCommandTest, ShowsTheLogOfABuildOnThisHost) {
  Configure();
  PutBuild();
  testing::TemporaryFolder temporary;
  const std::string& folder = temporary.path();
  config_->common.build_log_dir = folder;
  std::ofstream log(folder + "/deb-12-fedcba9876543210fedcba9876543210.log");
  log << "first line\nsecond " << std::flush;
  Waiting waiting(time_, Command({"image-build", "deb-12", "--wait"}));
  std::string build = "/nodepool/images/deb-12/builds/fedcba9876543210fedcba9876543210";
  Put(build, R"({"state": "building", "state_time": 1, "builder": "nb01"})");
  time_.Advance(std::chrono::seconds(5));
  EXPECT_THAT(out_.str(), ::testing::EndsWith("building\nfirst line\n"));
  log << "line\n" << std::flush;
  time_.Advance(std::chrono::seconds(2));
  EXPECT_THAT(out_.str(), ::testing::EndsWith("first line\nsecond line\n"));
  log << std::string(200'000, 'x') << "\nlast line\n" << std::flush;
  Put(build, R"({"state": "ready", "state_time": 2})");
  ServeRequest();
  time_.Advance(std::chrono::seconds(5));
  EXPECT_EQ(waiting.status, 0);
  EXPECT_THAT(out_.str(), HasSubstr("[...]\nlast line\n")) << "of too much only the end is shown";
  EXPECT_LT(out_.str().size(), 1000u);
}

// D-70, operations.md 13.8
TEST_F(ImageCommandTest, AnUploadIsMadeAnew) {
  ConfigureProviders({"cloud", "other"});
  PutBuild();
  PutUpload();
  Waiting waiting(time_, Command({"image-upload", "deb-12", "--wait"}));
  EXPECT_THAT(Data(upload_path_), HasSubstr(R"("state": "deleting")"));
  EXPECT_THAT(out_.str(), HasSubstr("cloud: upload 0000000001 of build deb-12-"));
  EXPECT_THAT(out_.str(),
              HasSubstr(std::string("other: build deb-12-") + kBuild + " is missing and will be uploaded\n"));
  Put(build_path_ + "/providers/other/images/0000000001", R"({"state": "ready", "state_time": 2})");
  time_.Advance(std::chrono::seconds(5));
  EXPECT_FALSE(waiting.status) << "the one in the other provider was deleted";
  Put(build_path_ + "/providers/cloud/images/0000000002", R"({"state": "ready", "state_time": 2})");
  time_.Advance(std::chrono::seconds(5));
  EXPECT_EQ(waiting.status, 0);
}

TEST_F(ImageCommandTest, AnUploadToOneProvider) {  // D-70
  ConfigureProviders({"cloud", "other"});
  EXPECT_EQ(Run({"image-upload", "cloud", "deb-12"}), 1);
  EXPECT_EQ(log_.Count("has no ready build"), 1);
  PutBuild();
  PutUpload();
  EXPECT_EQ(Run({"image-upload", "unknown", "deb-12"}), 1);
  EXPECT_EQ(Run({"image-upload", "cloud", "unknown"}), 1);
  EXPECT_EQ(log_.Count("is not one of the configured providers"), 1);
  EXPECT_EQ(log_.Count("does not list the image"), 1);
  EXPECT_THAT(Data(upload_path_), HasSubstr(R"("state": "ready")"));
  Shown({"image-upload", "other", "deb-12"});
  EXPECT_THAT(Data(upload_path_), HasSubstr(R"("state": "ready")"));
  Shown({"image-upload", "cloud", "deb-12"});
  EXPECT_THAT(Data(upload_path_), HasSubstr(R"("state": "deleting")"));
}

TEST_F(ImageCommandTest, AnUpdateIsABuildAndItsUpload) {  // D-70
  ConfigureProviders({"cloud"});
  PutBuild();
  PutUpload();
  EXPECT_EQ(Run({"image-update", "unknown", "deb-12", "--wait"}), 1);
  EXPECT_FALSE(Exists("/nodepool/images/deb-12/request-build"));
  Waiting waiting(time_, Command({"image-update", "all", "deb-12", "--wait"}));
  EXPECT_TRUE(Exists("/nodepool/images/deb-12/request-build"));
  std::string build = "/nodepool/images/deb-12/builds/fedcba9876543210fedcba9876543210";
  Put(build, R"({"state": "ready", "state_time": 2})");
  ServeRequest();
  time_.Advance(std::chrono::seconds(5));
  EXPECT_FALSE(waiting.status);
  Put(build + "/providers/cloud/images/0000000001", R"({"state": "ready", "state_time": 2})");
  time_.Advance(std::chrono::seconds(5));
  EXPECT_EQ(waiting.status, 0);
  EXPECT_THAT(Data(upload_path_), HasSubstr(R"("state": "ready")")) << "the old one stays";
}

// D-70, operations.md 13.8
TEST_F(ImageCommandTest, OnlyAnImageThatALabelUsesIsUpdated) {
  ConfigureProviders({"cloud"});
  auto refuse = [&](const driver::PoolConfig& pool) {
    auto provider = std::make_shared<driver::ProviderConfig>(*config_->providers[ProviderName("cloud")]);
    provider->pools[PoolName("main")] = std::make_shared<driver::PoolConfig>(pool);
    config_->providers[ProviderName("cloud")] = std::move(provider);
    EXPECT_EQ(Run({"image-update", "all", "deb-12"}), 1);
  };
  driver::PoolConfig disabled = *config_->providers[ProviderName("cloud")]->pools.at(PoolName("main"));
  disabled.max_servers = 0;
  refuse(disabled);
  refuse({});
  EXPECT_EQ(log_.Count("No enabled label uses the image deb-12; give a label of a pool `diskimage: deb-12`, "
                       "or build the image alone with image-build deb-12"),
            2);
  EXPECT_FALSE(Exists("/nodepool/images/deb-12/request-build"));
  EXPECT_EQ(Shown({"image-build", "deb-12"}), "");
}

// operations.5.6, 16.7, D-66
TEST_F(ImageCommandTest, DeletingMarks) {
  std::string name = std::string("deb-12-") + kBuild;
  std::vector<std::string> deletion = {"image-delete", "--provider", "cloud",       "--image",   "deb-12",
                                       "--build-id",   kBuild,       "--upload-id", "0000000001"};
  EXPECT_EQ(Refused({"dib-image-delete", name}), "Build " + name + " not found");
  EXPECT_EQ(Refused(deletion), "Image upload not found");
  EXPECT_EQ(Run({"dib-image-delete", "nodash"}), 1);
  EXPECT_EQ(Refused({"dib-image-delete", "a/b-c"}), "Build a/b-c not found");
  PutBuild("building");
  PutUpload("uploading");
  EXPECT_EQ(Refused({"dib-image-delete", name}), "Cannot delete a build in progress");
  EXPECT_EQ(Refused(deletion), "Cannot delete because image upload in progress");
  PutBuild();
  PutUpload();
  EXPECT_EQ(Shown({"dib-image-delete", name}), "");
  EXPECT_EQ(Shown(deletion), "");
  EXPECT_THAT(Data(build_path_), HasSubstr(R"("state": "deleting")"));
  EXPECT_THAT(Data(upload_path_), HasSubstr(R"("state": "deleting")"));
  EXPECT_THAT(Data(upload_path_), HasSubstr(R"("external_id": "x")"));
  EXPECT_FALSE(Exists(upload_path_ + "/lock"));
}

// operations.13.8
TEST_F(ImageCommandTest, AnUploadIsMeantByItsNumberOrByItsIdInTheCloud) {
  PutBuild();
  for (const char* id : {"1", "0000000001", "x"}) {
    PutUpload();
    EXPECT_EQ(Shown({"image-delete", id}), "");
    EXPECT_THAT(Data(upload_path_), HasSubstr(R"("state": "deleting")")) << id;
  }
  for (const char* id : {"2", "01x", "y", "0"}) {
    EXPECT_EQ(Refused({"image-delete", id}), "Image upload not found") << id;
  }
  PutUpload();
  Put(build_path_ + "/providers/other/images/0000000001", Data(upload_path_));
  EXPECT_EQ(Run({"image-delete", "1"}), 1) << "which of the two?";
  EXPECT_THAT(Data(upload_path_), HasSubstr(R"("state": "ready")"));
}

// operations.13.8
TEST_F(ImageCommandTest, ForcedTheRecordGoesAtOnce) {
  PutBuild();
  PutUpload("uploading");
  EXPECT_EQ(Refused({"image-delete", "1", "--force"}), "Cannot delete because image upload in progress");
  PutUpload();
  EXPECT_EQ(Shown({"image-delete", "1", "--force"}), "");
  EXPECT_FALSE(Exists(upload_path_));
}

// operations.5.8, 16.9
TEST_F(ImageCommandTest, ExportAndImport) {
  Configure();
  PutBuild();
  PutUpload();
  Shown({"image-pause", "deb-12"});
  Shown({"image-build", "deb-12"});
  testing::TemporaryFolder temporary;
  const std::string& folder = temporary.path();
  std::string path = folder + "/data";
  std::ofstream(path) << std::string(10000, 'x');
  EXPECT_EQ(Shown({"export-image-data", path}), "");
  struct stat status;
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  std::string pause = "/nodepool/images/deb-12/pause";
  std::string build = Data(build_path_), upload = Data(upload_path_);
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(boost::json::parse(text.str()),
            (boost::json::object{{pause, ""}, {build_path_, build}, {upload_path_, upload}}));
  Erase("/nodepool");
  Put("/nodepool/components/builder/nb010000000000", R"({"hostname": "nb01", "state": "running"})");
  EXPECT_THROW(Run({"import-image-data", path}), Error) << "a builder runs";
  EXPECT_FALSE(Exists(build_path_));
  EXPECT_EQ(Shown({"import-image-data", path, "--force"}), "");
  EXPECT_EQ(log_.Count("1 image, 1 build, 1 upload imported from " + path), 1);
  Erase("/nodepool");
  EXPECT_EQ(Shown({"import-image-data", path}), "");
  EXPECT_EQ(Data(build_path_), build);
  EXPECT_EQ(Data(upload_path_), upload);
  EXPECT_EQ(Data(pause), "");
  EXPECT_FALSE(Exists("/nodepool/images/deb-12/request-build"));
  auto lock = time_.Run(others_.images.TryLockUploads(Key().build, Key().provider));
  ASSERT_TRUE(lock);
  store::StoredUpload next = time_.Run(others_.images.CreateUpload(Key().build, Key().provider, {}, *lock));
  EXPECT_EQ(next.id.upload.value, "0000000003") << "1 was restored, 2 is the lock's directory";
  // Existing records are overwritten, and nothing else is changed.
  zk_.tree().Set({build_path_, "", -1}, 0, time_.clock().Now());
  EXPECT_EQ(Shown({"import-image-data", path}), "");
  EXPECT_EQ(Data(build_path_), build);
  EXPECT_TRUE(time_.Run(others_.images.ReadUpload(next.id)));
  time_.Run(others_.tree.Unlock(*lock));
  std::ofstream(path) << "[]";
  EXPECT_THROW(Run({"import-image-data", path}), Error);
  EXPECT_THROW(Run({"import-image-data", folder + "/none"}), Error);
  EXPECT_THROW(Run({"export-image-data", folder + "/none/x"}), Error);
}

}  // namespace
}  // namespace nodepool::cli
