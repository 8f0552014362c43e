#include "base/sparse_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/testing/test_environment.h"

namespace nodepool {

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

class SparseFileTest : public ::testing::Test {
 protected:
  // A file of 4 MiB with data in the second and third.
  std::string Make() {
    std::ofstream file(path_, std::ios::binary);
    file.seekp(kMiB);
    file << std::string(2 * kMiB, 'd');
    file.close();
    std::filesystem::resize_file(path_, 4 * kMiB);
    return path_;
  }

  testing::TemporaryFolder folder_;
  std::string path_ = folder_ / "image";
};

TEST_F(SparseFileTest, StretchesAddUpToTheFileAndHolesReadAsZeros) {
  SparseFile file(Make());
  ASSERT_EQ(file.size(), 4 * kMiB);
  std::string content;
  std::uint64_t data = 0;
  for (SparseFile::Stretch next = file.At(0); next.length > 0; next = file.At(content.size())) {
    std::string bytes(next.length, '\0');
    if (next.is_data) file.Read(content.size(), bytes.data(), bytes.size());
    data += next.is_data ? next.length : 0;
    content += bytes;
  }
  EXPECT_TRUE(content == std::string(kMiB, '\0') + std::string(2 * kMiB, 'd') + std::string(kMiB, '\0'));
  // A file system may keep more than was written, and one without holes keeps all.
  EXPECT_GE(data, 2 * kMiB);
  EXPECT_EQ(file.At(file.size()).length, 0u);
}

TEST_F(SparseFileTest, AStretchMayBeginAnywhere) {
  SparseFile file(Make());
  EXPECT_TRUE(file.At(2 * kMiB + 7).is_data);
  EXPECT_GE(file.At(2 * kMiB + 7).length, kMiB - 7);
}

TEST_F(SparseFileTest, WhatIsNoFileIsRefused) {
  EXPECT_THROW(SparseFile("/nowhere/image"), Error);
  EXPECT_THROW(SparseFile(folder_.path()), Error);
}

TEST_F(SparseFileTest, AFileThatBecomesShorterIsAnError) {
  SparseFile file(Make());
  std::filesystem::resize_file(path_, kMiB);
  char byte = 0;
  EXPECT_THROW(file.Read(2 * kMiB, &byte, 1), Error);
}

}  // namespace

}  // namespace nodepool
