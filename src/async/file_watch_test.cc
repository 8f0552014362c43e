#include "async/file_watch.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <boost/asio/post.hpp>
#include <fstream>

namespace nodepool {
namespace {

namespace fs = std::filesystem;

class FileWatchTest : public ::testing::Test {
 protected:
  FileWatchTest() {
    std::string pattern = (fs::temp_directory_path() / "nodepool-file-watch-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    fs::create_directory(folder_ / "etc");
    Write("etc/file", "1");
  }
  ~FileWatchTest() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  void Rename(const std::string& from, const std::string& to) { fs::rename(folder_ / from, folder_ / to); }
  void Link(const std::string& target, const std::string& name) {
    fs::create_symlink(target, folder_ / name);
  }

  void WatchFile(const std::string& name) {
    watch_.emplace(loop_, std::vector<std::string>{(folder_ / name).string()}, [this] { is_told_ = true; });
    EXPECT_EQ(watch_->fault(), "");
  }
  // Whether there was a change since the last question.
  bool IsTold() {
    loop_.RunReady();
    return std::exchange(is_told_, false);
  }

  fs::path folder_;
  Loop loop_;
  std::optional<FileWatch> watch_;
  bool is_told_ = false;
};

TEST_F(FileWatchTest, AFileIsWrittenReplacedRemovedAndBack) {
  WatchFile("etc/file");
  EXPECT_FALSE(IsTold());
  for (int round = 0; round < 3; ++round) {
    Write("etc/file", "2");
    EXPECT_TRUE(IsTold());
    Write("etc/new", "3");
    EXPECT_FALSE(IsTold()) << "another file of the directory";
    Rename("etc/new", "etc/file");
    EXPECT_TRUE(IsTold());
    Rename("etc/file", "etc/file~");
    EXPECT_TRUE(IsTold());
    Write("etc/file", "4");
    EXPECT_TRUE(IsTold());
    fs::remove(folder_ / "etc/file");
    EXPECT_TRUE(IsTold());
    Rename("etc/file~", "etc/file");
    EXPECT_TRUE(IsTold());
    ::chmod((folder_ / "etc/file").c_str(), 0600);
    EXPECT_TRUE(IsTold()) << "it can be read now, or not any more";
  }
}

TEST_F(FileWatchTest, AFileThatIsBeingWrittenCountsWhenItIsClosed) {
  WatchFile("etc/file");
  std::ofstream file(folder_ / "etc/file");
  file << "half" << std::flush;
  EXPECT_FALSE(IsTold());
  file << "whole";
  file.close();
  EXPECT_TRUE(IsTold());
}

TEST_F(FileWatchTest, EveryLinkOnTheWayIsWatched) {
  fs::create_directory(folder_ / "other");
  Write("other/file", "2");
  Link("etc", "data");
  Link((folder_ / "data").string(), "absolute");
  fs::create_directory(folder_ / "mount");
  Link("../absolute/file", "mount/file");
  WatchFile("mount/file");
  EXPECT_FALSE(IsTold());
  Write("etc/file", "3");
  EXPECT_TRUE(IsTold()) << "the file itself";
  Link("other", "new");
  EXPECT_FALSE(IsTold());
  Rename("new", "data");
  EXPECT_TRUE(IsTold()) << "a link in the middle";
  Write("etc/file", "4");
  EXPECT_FALSE(IsTold()) << "it does not lead there any more";
  Write("other/file", "5");
  EXPECT_TRUE(IsTold());
  fs::remove(folder_ / "mount/file");
  EXPECT_TRUE(IsTold());
  Link("../etc/file", "mount/file");
  EXPECT_TRUE(IsTold());
  Write("etc/file", "6");
  EXPECT_TRUE(IsTold());
}

TEST_F(FileWatchTest, TheDirectoryMayComeLaterAndGo) {
  WatchFile("later/inner/file");
  fs::create_directory(folder_ / "later");
  EXPECT_TRUE(IsTold());
  fs::create_directory(folder_ / "later/inner");
  EXPECT_TRUE(IsTold());
  Write("later/inner/file", "1");
  EXPECT_TRUE(IsTold());
  Rename("later/inner", "later/outer");
  EXPECT_TRUE(IsTold());
  Write("later/outer/file", "2");
  EXPECT_FALSE(IsTold());
  fs::create_directory(folder_ / "later/inner");
  EXPECT_TRUE(IsTold());
  Write("later/inner/file", "3");
  EXPECT_TRUE(IsTold());
}

TEST_F(FileWatchTest, LinksInACircleEnd) {
  Link("b", "a");
  Link("a", "b");
  WatchFile("a/file");
  EXPECT_FALSE(IsTold());
  fs::remove(folder_ / "b");
  EXPECT_TRUE(IsTold());
}

TEST_F(FileWatchTest, ItMayEndAtAnyTime) {
  WatchFile("etc/file");
  Write("etc/file", "2");
  watch_.reset();
  EXPECT_FALSE(IsTold());
  // Also when the loop knows of the change already.
  WatchFile("etc/file");
  Write("etc/file", "3");
  boost::asio::post(loop_.context(),
                    [this] { boost::asio::post(loop_.context(), [this] { watch_.reset(); }); });
  IsTold();
  EXPECT_FALSE(watch_);
}

}  // namespace
}  // namespace nodepool
