#include "base/checked_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <sstream>

namespace nodepool {
namespace {

using ::testing::IsEmpty;

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
