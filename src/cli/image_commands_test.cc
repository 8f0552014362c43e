#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "async/task_group.h"
#include "cli/build_requests.h"
#include "cli/fixture_test.h"
#include "cli/image_changes.h"
#include "cli/image_data.h"
#include "cli/image_listings.h"

namespace nodepool::cli {
namespace {

using ::testing::HasSubstr;

class ImageCommandTest : public CommandTest {
 protected:
  static constexpr const char* kBuild = "0123456789abcdef0123456789abcdef";

  void Put(const std::string& path, const std::string& data) {
    std::string parent = path.substr(0, path.rfind('/'));
    if (!parent.empty() && !Exists(parent)) Put(parent, "");
    if (!zk_.tree().Create({path, data}, 0, time_.clock().Now())) {
      zk_.tree().Set({path, data, -1}, 0, time_.clock().Now());
    }
  }
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
  std::string Shown(Task<int> command) {
    out_.str("");
    EXPECT_EQ(time_.Run(std::move(command)), 0);
    return out_.str();
  }
  void Configure(bool is_paused = false) {
    config::DiskImage& image = config_->common.diskimages[ImageName("deb-12")];
    image.name = ImageName("deb-12");
    image.is_paused = is_paused;
  }

  std::string build_path_ = std::string("/nodepool/images/deb-12/builds/") + kBuild;
  std::string upload_path_ = build_path_ + "/providers/cloud/images/0000000001";
};

// operations.md 5.4
TEST_F(ImageCommandTest, Listings) {
  PutBuild();
  PutUpload();
  Put("/nodepool/images/deb-12/builds/broken", "{");
  std::uint64_t before = our_writes();
  EXPECT_THAT(Shown(DibImageList(context_, Output::kTable)),
              HasSubstr(std::string("| deb-12-") + kBuild +
                        " | deb-12 | nb01    | qcow2,raw | ready | 00:00:01:01 |"));
  EXPECT_EQ(Shown(ImageList(context_, Output::kJson)),
            std::string(R"([{"id":")") + kBuild +
                R"(","upload_id":"0000000001","provider":"cloud","image":"deb-12","external_name":"n",)"
                R"("external_id":"x","state":"ready","age":1.6999999905E9}])"
                "\n");
  EXPECT_THAT(Shown(ImageStatus(context_, Output::kTable)),
              HasSubstr("| deb-12 | False  |               |                   |"));
  EXPECT_EQ(log_.Count("broken"), 3);
  EXPECT_EQ(our_writes(), before);
}

TEST_F(ImageCommandTest, PausedAndAskedFor) {
  Configure();
  EXPECT_EQ(time_.Run(PauseImage(context_, ImageName("deb-12"))), 1);
  EXPECT_EQ(log_.Count("There is no image deb-12"), 1);
  PutBuild();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Shown(PauseImage(context_, ImageName("deb-12"))), "");
  EXPECT_THAT(Shown(DibImageList(context_, Output::kTable)), HasSubstr("| paused |"));
  EXPECT_EQ(Shown(RequestBuild(context_, ImageName("deb-12"), false)), "");
  EXPECT_THAT(Shown(ImageStatus(context_, Output::kTable)),
              HasSubstr("| deb-12 | True   | pending       | 00:00:00:00"));
  auto lock = time_.Run(others_.TryLockImage(ImageName("deb-12")));
  EXPECT_THAT(Shown(ImageStatus(context_, Output::kTable)), HasSubstr("| building "));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Shown(UnpauseImage(context_, ImageName("deb-12"))), "");
  EXPECT_THAT(Shown(DibImageList(context_, Output::kTable)), HasSubstr("| ready |"));
}

// operations.md 16.6
TEST_F(ImageCommandTest, OnlyWhatIsConfiguredAndNotPausedCanBeAskedFor) {
  EXPECT_EQ(time_.Run(RequestBuild(context_, ImageName("deb-12"), false)), 1);
  Configure(true);
  EXPECT_EQ(time_.Run(RequestBuild(context_, ImageName("deb-12"), false)), 1);
  EXPECT_FALSE(Exists("/nodepool"));
}

TEST_F(ImageCommandTest, WaitsUntilTheBuildIsReadyAndTellsOfFailures) {
  Configure();
  PutBuild();
  TaskGroup tasks(time_.loop(), log::Logger("test"));
  bool is_done = false;
  struct Wait {
    static Task<> Run(Context& context, bool& is_done) {
      co_await RequestBuild(context, ImageName("deb-12"), true);
      is_done = true;
    }
  };
  tasks.Spawn("wait", Wait::Run(context_, is_done));
  time_.Advance(std::chrono::seconds(5));
  EXPECT_TRUE(Exists("/nodepool/images/deb-12/request-build"));
  Put("/nodepool/images/deb-12/builds/fedcba9876543210fedcba9876543210",
      R"({"state": "failed", "state_time": 1})");
  time_.Advance(std::chrono::seconds(5));
  EXPECT_EQ(log_.Count("failed; the builder tries again"), 1);
  EXPECT_FALSE(is_done);
  time_.Run(others_.RemoveBuildRequest(ImageName("deb-12")));
  time_.Advance(std::chrono::seconds(5));
  EXPECT_TRUE(is_done);
}

// operations.md 5.6, 16.7
TEST_F(ImageCommandTest, DeletingMarks) {
  std::string name = std::string("deb-12-") + kBuild;
  EXPECT_EQ(Shown(DibImageDelete(context_, name)), "Build " + name + " not found\n");
  EXPECT_EQ(Shown(ImageDelete(context_, Key())), "Image upload not found\n");
  EXPECT_EQ(time_.Run(DibImageDelete(context_, "nodash")), 1);
  EXPECT_EQ(Shown(DibImageDelete(context_, "a/b-c")), "Build a/b-c not found\n");
  PutBuild("building");
  PutUpload("uploading");
  EXPECT_EQ(Shown(DibImageDelete(context_, name)), "Cannot delete a build in progress\n");
  EXPECT_EQ(Shown(ImageDelete(context_, Key())), "Cannot delete because image upload in progress\n");
  PutBuild();
  PutUpload();
  EXPECT_EQ(Shown(DibImageDelete(context_, name)), "");
  EXPECT_EQ(Shown(ImageDelete(context_, Key())), "");
  EXPECT_THAT(Data(build_path_), HasSubstr(R"("state": "deleting")"));
  EXPECT_THAT(Data(upload_path_), HasSubstr(R"("state": "deleting")"));
  EXPECT_THAT(Data(upload_path_), HasSubstr(R"("external_id": "x")"));
  EXPECT_FALSE(Exists(upload_path_ + "/lock"));
}

// operations.md 5.8, 16.9
TEST_F(ImageCommandTest, ExportAndImport) {
  PutBuild();
  PutUpload();
  std::string folder = (std::filesystem::temp_directory_path() / "nodepool-export-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  std::string path = folder + "/data";
  std::ofstream(path) << std::string(10000, 'x');
  EXPECT_EQ(Shown(ExportImageData(context_, path)), "");
  struct stat status;
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  std::string build = Data(build_path_);
  zk_.tree().Set({build_path_, "", -1}, 0, time_.clock().Now());
  EXPECT_EQ(Shown(ImportImageData(context_, path)), "");
  EXPECT_EQ(Data(build_path_), build);
  std::ofstream(path) << "[]";
  EXPECT_THROW(time_.Run(ImportImageData(context_, path)), Error);
  EXPECT_THROW(time_.Run(ImportImageData(context_, folder + "/none")), Error);
  EXPECT_THROW(time_.Run(ExportImageData(context_, folder + "/none/x")), Error);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace nodepool::cli
