#include "base/file_end.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace nodepool {
namespace {

namespace fs = std::filesystem;

class FileEndTest : public ::testing::Test {
 protected:
  FileEndTest() {
    std::string name = (fs::temp_directory_path() / "nodepool-file-end-XXXXXX").string();
    folder = ::mkdtemp(name.data());
  }
  ~FileEndTest() override { fs::remove_all(folder); }

  std::string Write(const std::string& text) const {
    std::ofstream(folder / "log") << text;
    return (folder / "log").string();
  }

  fs::path folder;
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
