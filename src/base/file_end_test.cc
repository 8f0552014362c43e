#include "base/file_end.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/testing/temporary_folder.h"

namespace nodepool {
namespace {

namespace fs = std::filesystem;

class FileEndTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& text) const {
    std::ofstream(folder / "log") << text;
    return (folder / "log").string();
  }

  testing::TemporaryFolder temporary_;
  fs::path folder = temporary_.path();
};

TEST_F(FileEndTest, OfALongFileOnlyWholeLinesAreRead) {
  EXPECT_EQ(ReadFileEnd(Write("one\ntwo\nthree\n"), 100), "one\ntwo\nthree\n");
  EXPECT_EQ(ReadFileEnd(Write("one\ntwo\nthree\n"), 8), "three\n");
  EXPECT_EQ(ReadFileEnd(Write(""), 8), "");
}

TEST_F(FileEndTest, OnlyRegularFilesAreRead) {
  std::string path = Write("secret");
  fs::create_symlink(path, folder / "link");
  EXPECT_THROW(ReadFileEnd((folder / "link").string(), 8), Error);
  EXPECT_THROW(ReadFileEnd(folder.string(), 8), Error);
  EXPECT_THROW(ReadFileEnd((folder / "nothing").string(), 8), Error);
}

}  // namespace
}  // namespace nodepool
