#include "base/small_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace nodepool {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class SmallFileTest : public ::testing::Test {
 protected:
  ~SmallFileTest() override { std::filesystem::remove(path); }
  void Write(const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
  template <class Read>
  std::string Fails(Read read) {
    try {
      read();
    } catch (const Error& error) {
      EXPECT_EQ(error.verdict(), Verdict::kInvalid);
      return error.message();
    }
    return "no error";
  }

  std::string path = ::testing::TempDir() + "small-file-" + std::to_string(getpid());
};

TEST_F(SmallFileTest, TheContentOrTheTextInIt) {
  Write(" token\n");
  EXPECT_EQ(ReadSmallFile(path), " token\n");
  EXPECT_EQ(ReadTextFile(path), "token");
}

TEST_F(SmallFileTest, AnErrorNamesTheFileAndTheReason) {
  EXPECT_THAT(Fails([&] { ReadSmallFile(path); }), HasSubstr(path + " cannot be read: No such file"));
  EXPECT_THAT(Fails([] { ReadSmallFile("/"); }), HasSubstr("/ cannot be read"));
  Write("");
  EXPECT_THAT(Fails([&] { ReadSmallFile(path); }), EndsWith("is empty"));
  Write(" \n ");
  EXPECT_THAT(Fails([&] { ReadTextFile(path); }), EndsWith("is empty"));
  Write("12345");
  EXPECT_EQ(ReadSmallFile(path, 6), "12345");
  EXPECT_THAT(Fails([&] { ReadSmallFile(path, 5); }), EndsWith("is too large"));
}

}  // namespace
}  // namespace nodepool
