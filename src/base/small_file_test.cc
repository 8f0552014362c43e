#include "base/small_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/testing/test_environment.h"

namespace nodepool {

namespace {

namespace fs = std::filesystem;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

class LostOutputTest : public ::testing::TestWithParam<std::size_t> {};

// Shorter than any buffer, and longer.
INSTANTIATE_TEST_SUITE_P(Sizes, LostOutputTest, ::testing::Values(1, 100'000));

TEST_P(LostOutputTest, OutputThatIsLostIsAFailureWithItsReason) {
  std::ofstream full("/dev/full");
  std::ostringstream err;
  CheckedOutput output(full);
  full << std::string(GetParam(), 'x') << 1 << '\n';
  EXPECT_EQ(output.Finish("tool", 0, err), 1);
  EXPECT_EQ(err.str(), "tool: the output is incomplete: No space left on device\n");
}

TEST(CheckedOutputTest, AFailureKeepsItsStatus) {
  std::ofstream full("/dev/full");
  std::ostringstream err;
  CheckedOutput output(full);
  full << "x";
  EXPECT_EQ(output.Finish("tool", 130, err), 130);
}

TEST(CheckedOutputTest, WhatIsWrittenIsPassedOn) {
  std::ostringstream out, err;
  {
    CheckedOutput output(out);
    out << "text " << 7 << std::flush << std::endl;
    EXPECT_EQ(output.Finish("tool", 0, err), 0);
  }
  out << "after";
  EXPECT_EQ(out.str(), "text 7\nafter");
  EXPECT_THAT(err.str(), IsEmpty());
}

// A reader that has gone.
class BrokenPipe : public std::streambuf {
  int_type overflow(int_type) override {
    errno = EPIPE;
    return traits_type::eof();
  }
};

TEST(CheckedOutputTest, AReaderThatHasSeenEnoughIsNoFailure) {
  BrokenPipe pipe;
  std::ostream out(&pipe);
  std::ostringstream err;
  {
    CheckedOutput output(out);
    out << "x" << std::flush;
    EXPECT_EQ(output.Finish("tool", 0, err), 0);
  }
  EXPECT_THAT(err.str(), IsEmpty());
  EXPECT_TRUE(out.bad()) << "the stream itself is as it was";
}

}  // namespace

}  // namespace nodepool
