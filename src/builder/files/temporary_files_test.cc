#include "builder/files/temporary_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "async/blocking_pool.h"
#include "async/loop.h"
#include "base/testing/temporary_folder.h"
#include "builder/files/directory_files.h"

namespace nodepool::builder {
namespace {

namespace fs = std::filesystem;

using Paths = std::vector<std::string>;

TEST(TemporaryDirectoriesTest, AreWhatTheLogSaysThatMktempMade) {
  EXPECT_EQ(TemporaryDirectories("2026-11-21 10:00:00.000 | + TMP_BUILD_DIR=/srv/tmp/dib_build.aB3dEf7h\n"
                                 "2026-11-21 10:00:00.010 | + TMP_IMAGE_DIR=/srv/tmp/dib_image.01234567\n"
                                 "2026-11-21 10:00:00.020 | ++ TMP_BUILD_DIR=/srv/tmp/dib_build.aB3dEf7h\n"),
            (Paths{"/srv/tmp/dib_build.aB3dEf7h", "/srv/tmp/dib_image.01234567"}));
}

TEST(TemporaryDirectoriesTest, AreNothingElse) {
  for (std::string value :
       {"/", "/home", "/srv/dib_build.short", "/srv/dib_build.toolong01", "dib_build.aB3dEf7h",
        "/srv/../dib_build.aB3dEf7h", "/srv/dib_build.aB3dEf7h/", "/srv/dib_build.aB3dEf7h/mnt",
        "/srv/dib_build.aB3d*f7h", "/srv/dib_other.aB3dEf7h", ""}) {
    EXPECT_TRUE(TemporaryDirectories("+ TMP_BUILD_DIR=" + value + "\n").empty()) << value;
  }
  EXPECT_TRUE(TemporaryDirectories("+ rm -r /srv/dib_build.aB3dEf7h\n").empty());
  EXPECT_TRUE(TemporaryDirectories(std::string(1 << 20, 'x')).empty());
}

class LeftoversTest : public ::testing::Test {
 protected:
  LeftoversTest() {
    temporary_folder_ = folder_.string();
    left_ = folder_ / "dib_build.aB3dEf7h";
    fs::create_directories(left_ / "mnt/dev");
    std::ofstream(left_ / "mnt/dev/file") << "x";
    fs::create_directories(folder_ / "logs");
  }

  fs::path WriteLog(const std::string& end,
                    const std::string& name = "debian-" + std::string(32, 'a') + ".log") {
    fs::path path = folder_ / "logs" / name;
    std::ofstream(path) << "+ TMP_BUILD_DIR=" << left_.string() << "\nmore\n" << end;
    return path;
  }
  Paths Remove() {
    return RunToEnd(loop_, files_.RemoveTemporary((folder_ / "logs").string(), {temporary_folder_}));
  }

  Loop loop_;
  BlockingPool pool_{1};
  DirectoryFiles files_{pool_};
  testing::TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
  fs::path left_;
  std::string temporary_folder_;
};

TEST_F(LeftoversTest, OfBuildsThatDidNotEndWellAreRemoved) {  // D-41
  for (std::string end : {"", "Exit code: -9\n", "Exit code: 1\n"}) {
    fs::create_directories(left_);
    WriteLog(end);
    EXPECT_EQ(Remove(), Paths{left_.string()}) << end;
    EXPECT_FALSE(fs::exists(left_));
    EXPECT_EQ(Remove(), Paths{}) << "a second sweep finds nothing";
  }
}

TEST_F(LeftoversTest, OfOtherProgramsAreNot) {
  WriteLog("Exit code: 0\n");
  WriteLog("Exit code: 1\n", "notes.log");
  EXPECT_EQ(Remove(), Paths{});
  EXPECT_TRUE(fs::exists(left_));
  fs::remove_all(folder_ / "logs");
  EXPECT_EQ(Remove(), Paths{}) << "no build yet";
}

TEST_F(LeftoversTest, OfABuildThatRunsAreNot) {
  std::ofstream writer(WriteLog(""), std::ios::app);
  EXPECT_EQ(Remove(), Paths{});
  writer.close();
  EXPECT_EQ(Remove(), Paths{left_.string()});
}

TEST_F(LeftoversTest, OutsideTheFoldersOfBuildsAreNot) {
  WriteLog("");
  for (const fs::path& folder :
       {fs::path("/"), fs::path("/var"), folder_ / "missing", folder_.parent_path()}) {
    temporary_folder_ = folder.string();
    EXPECT_EQ(Remove(), Paths{}) << folder;
  }
  EXPECT_TRUE(fs::exists(left_ / "mnt/dev/file"));
}

TEST_F(LeftoversTest, BehindALinkAreNot) {
  fs::path temporary = folder_ / "tmp";
  fs::create_directory(temporary);
  fs::create_directory_symlink(folder_, temporary / "link");
  temporary_folder_ = temporary.string();
  left_ = temporary / "link" / left_.filename();
  WriteLog("");
  EXPECT_EQ(Remove(), Paths{});
  EXPECT_TRUE(fs::exists(left_));
}

TEST_F(LeftoversTest, AreRemovedWhereTheFolderItselfIsALink) {
  fs::path link = folder_.string() + "-link";
  fs::create_directory_symlink(folder_, link);
  temporary_folder_ = link.string();
  fs::path real = left_;
  left_ = link / left_.filename();
  WriteLog("");
  EXPECT_EQ(Remove(), Paths{fs::canonical(folder_) / real.filename()});
  fs::remove(link);
}

TEST_F(LeftoversTest, ALinkIsNotFollowed) {
  fs::path elsewhere = folder_ / "elsewhere";
  fs::rename(left_, elsewhere);
  fs::create_directory_symlink(elsewhere, left_);
  WriteLog("");
  EXPECT_EQ(Remove(), Paths{});
  EXPECT_TRUE(fs::exists(elsewhere / "mnt/dev/file"));
}

}  // namespace
}  // namespace nodepool::builder
