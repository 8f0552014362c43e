#include "async/file_watch.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <boost/asio/post.hpp>
#include <fstream>

#include "async/testing/run_ready.h"
#include "base/testing/test_environment.h"

namespace nodepool {
namespace {

namespace fs = std::filesystem;

class FileWatchTest : public ::testing::Test {
 protected:
  FileWatchTest() {
    fs::create_directory(folder_ / "etc");
    Write("etc/file", "1");
  }

  void Write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  void Rename(const std::string& from, const std::string& to) { fs::rename(folder_ / from, folder_ / to); }
  void Link(const std::string& target, const std::string& name) {
    fs::create_symlink(target, folder_ / name);
  }

  void WatchFile(const std::string& name) {
    watch_.emplace(loop_, std::vector<std::string>{(folder_ / name).string()}, [this] { is_told_ = true; });
    EXPECT_EQ(watch_->fault(), "");
  }
  // Whether there was a change since the last call.
  bool IsNotified() {
    testing::RunReady(loop_);
    return std::exchange(is_told_, false);
  }

  testing::TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
  Loop loop_;
  std::optional<FileWatch> watch_;
  bool is_told_ = false;
};

TEST_F(FileWatchTest, NoticesWritingReplacementRemovalAndReturn) {
  WatchFile("etc/file");
  EXPECT_FALSE(IsNotified());
  for (int round = 0; round < 3; ++round) {
    Write("etc/file", "2");
    EXPECT_TRUE(IsNotified());
    Write("etc/new", "3");
    EXPECT_FALSE(IsNotified()) << "another file of the directory";
    Rename("etc/new", "etc/file");
    EXPECT_TRUE(IsNotified());
    Rename("etc/file", "etc/file~");
    EXPECT_TRUE(IsNotified());
    Write("etc/file", "4");
    EXPECT_TRUE(IsNotified());
    fs::remove(folder_ / "etc/file");
    EXPECT_TRUE(IsNotified());
    Rename("etc/file~", "etc/file");
    EXPECT_TRUE(IsNotified());
    ::chmod((folder_ / "etc/file").c_str(), 0600);
    EXPECT_TRUE(IsNotified()) << "it can be read now, or not any more";
  }
}

TEST_F(FileWatchTest, AFileThatIsBeingWrittenCountsWhenItIsClosed) {
  WatchFile("etc/file");
  std::ofstream file(folder_ / "etc/file");
  file << "half" << std::flush;
  EXPECT_FALSE(IsNotified());
  file << "whole";
  file.close();
  EXPECT_TRUE(IsNotified());
}

TEST_F(FileWatchTest, EveryLinkOnTheWayIsWatched) {
  fs::create_directory(folder_ / "other");
  Write("other/file", "2");
  Link("etc", "data");
  Link((folder_ / "data").string(), "absolute");
  fs::create_directory(folder_ / "mount");
  Link("../absolute/file", "mount/file");
  WatchFile("mount/file");
  EXPECT_FALSE(IsNotified());
  Write("etc/file", "3");
  EXPECT_TRUE(IsNotified()) << "the file itself";
  Link("other", "new");
  EXPECT_FALSE(IsNotified());
  Rename("new", "data");
  EXPECT_TRUE(IsNotified()) << "a link in the middle";
  Write("etc/file", "4");
  EXPECT_FALSE(IsNotified()) << "the link does not lead there any more";
  Write("other/file", "5");
  EXPECT_TRUE(IsNotified());
  fs::remove(folder_ / "mount/file");
  EXPECT_TRUE(IsNotified());
  Link("../etc/file", "mount/file");
  EXPECT_TRUE(IsNotified());
  Write("etc/file", "6");
  EXPECT_TRUE(IsNotified());
}

TEST_F(FileWatchTest, TheDirectoryMayBeCreatedLaterAndRemoved) {
  WatchFile("later/inner/file");
  fs::create_directory(folder_ / "later");
  EXPECT_TRUE(IsNotified());
  fs::create_directory(folder_ / "later/inner");
  EXPECT_TRUE(IsNotified());
  Write("later/inner/file", "1");
  EXPECT_TRUE(IsNotified());
  Rename("later/inner", "later/outer");
  EXPECT_TRUE(IsNotified());
  Write("later/outer/file", "2");
  EXPECT_FALSE(IsNotified());
  fs::create_directory(folder_ / "later/inner");
  EXPECT_TRUE(IsNotified());
  Write("later/inner/file", "3");
  EXPECT_TRUE(IsNotified());
}

TEST_F(FileWatchTest, CircularLinksAreBounded) {
  Link("b", "a");
  Link("a", "b");
  WatchFile("a/file");
  EXPECT_FALSE(IsNotified());
  fs::remove(folder_ / "b");
  EXPECT_TRUE(IsNotified());
}

TEST_F(FileWatchTest, ItMayEndAtAnyTime) {
  WatchFile("etc/file");
  Write("etc/file", "2");
  watch_.reset();
  EXPECT_FALSE(IsNotified());
  // Also when the loop has already received the change.
  WatchFile("etc/file");
  Write("etc/file", "3");
  boost::asio::post(loop_.context(),
                    [this] { boost::asio::post(loop_.context(), [this] { watch_.reset(); }); });
  IsNotified();
  EXPECT_FALSE(watch_);
}

}  // namespace
}  // namespace nodepool
