#include "builder/files/image_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace nodepool::builder {
namespace {

using ::testing::HasSubstr;

class ImageCheckTest : public ::testing::Test {
 protected:
  ~ImageCheckTest() override { std::filesystem::remove(path_); }
  ImageCheck Check(const std::string& format, const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return CheckImageFile(path_, format);
  }

  std::string path_ =
      (std::filesystem::temp_directory_path() / fmt::format("nodepool-image-{}", ::getpid())).string();
};

TEST_F(ImageCheckTest, NoFormatHasAnEmptyFile) {
  for (const char* format : {"qcow2", "raw", "vhd", "vmdk"})
    EXPECT_THAT(Check(format, "").fault, HasSubstr(std::string("its ") + format + " file is empty"));
}

TEST_F(ImageCheckTest, WhatLooksLikeItsFormatIsNotDoubted) {
  std::string vhd = std::string(1024, 'x') + "conectix" + std::string(504, 0);
  for (const auto& [format, bytes] :
       {std::pair("qcow2", std::string("QFI\xfb") + "..."), std::pair("vhd", vhd),
        std::pair("raw", std::string("anything")), std::pair("vmdk", std::string("x"))}) {
    ImageCheck check = Check(format, bytes);
    EXPECT_EQ(check.fault + check.doubt, "") << format;
  }
}

TEST_F(ImageCheckTest, OtherBytesAreDoubtedButNoFault) {
  for (const char* format : {"qcow2", "vhd"}) {
    for (const std::string& bytes : {std::string("QF"), std::string("fake-data"), std::string(2048, 0)}) {
      ImageCheck check = Check(format, bytes);
      EXPECT_EQ(check.fault, "");
      EXPECT_THAT(check.doubt, HasSubstr(std::string("does not look like a ") + format));
    }
  }
}

TEST_F(ImageCheckTest, AFileThatCannotBeReadIsAnError) {
  EXPECT_THROW(CheckImageFile("/no/such/file.raw", "raw"), Error);
}

}  // namespace
}  // namespace nodepool::builder
