#include "drivers/libvirt/host/upload.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace nodepool::drivers::libvirt {

namespace {

class HashedFileTest : public ::testing::Test {
 protected:
  HashedFileTest() : path_(::testing::TempDir() + "sparse_file_" + std::to_string(getpid())) {}
  ~HashedFileTest() override { std::filesystem::remove(path_); }

  // Reads all of the file; returns how many bytes were data.
  static std::uint64_t ReadAll(HashedFile& file) {
    std::uint64_t data = 0;
    std::array<char, 1000> buffer{};
    for (SparseFile::Stretch section = file.Next(); section.length > 0; section = file.Next()) {
      if (section.is_data) {
        data += static_cast<std::uint64_t>(
            file.Read(buffer.data(), std::min<std::uint64_t>(buffer.size(), section.length)));
      } else {
        file.Skip(section.length);
      }
    }
    return data;
  }

  std::string path_;
};

// LV-18
TEST_F(HashedFileTest, HolesAreSkippedAndHashedAsZeros) {
  std::ofstream(path_) << "abc";
  std::filesystem::resize_file(path_, 1 << 20);
  HashedFile sparse(path_);
  EXPECT_EQ(sparse.size(), 1u << 20);
  EXPECT_LT(ReadAll(sparse), 1u << 16);
  std::ofstream(path_) << "abc" + std::string((1 << 20) - 3, '\0');
  HashedFile full(path_);
  EXPECT_EQ(ReadAll(full), 1u << 20);
  EXPECT_EQ(sparse.Sha256(), full.Sha256());
}

TEST_F(HashedFileTest, TheHashIsThatOfTheFile) {
  std::ofstream(path_) << "abc";
  HashedFile file(path_);
  EXPECT_EQ(ReadAll(file), 3u);
  EXPECT_EQ(file.Sha256(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_F(HashedFileTest, AFileThatIsNotThereIsNamed) {
  try {
    HashedFile file("/nowhere/image");
    FAIL() << "it was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "/nowhere/image: No such file or directory");
  }
}

}  // namespace

}  // namespace nodepool::drivers::libvirt
