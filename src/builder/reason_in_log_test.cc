#include "builder/reason_in_log.h"

#include <gtest/gtest.h>

namespace nodepool::builder {
namespace {

TEST(ReasonInLog, IsTheLastLineThatSpeaksOfAnError) {
  EXPECT_EQ(ReasonInLog("2026-05-01 10:00:00.123 | Building elements: base\n"
                        "2026-05-01 10:00:01.123 | E: Unable to locate package nope, not found\n"
                        "2026-05-01 10:00:01.200 | + cleanup error\n"
                        "2026-05-01 10:00:01.300 | Unmounting\n\n"),
            "E: Unable to locate package nope, not found");
}

TEST(ReasonInLog, IsElseTheLastLine) {
  EXPECT_EQ(ReasonInLog("one\ntwo\n  \n++ trace\n"), "two");
  EXPECT_EQ(ReasonInLog(""), "");
  EXPECT_EQ(ReasonInLog("+ set -e\n"), "");
}

TEST(ReasonInLog, IsShortAndShowsNoControls) {
  EXPECT_EQ(ReasonInLog("error: \x1b[31mred"), "error: \\x1b[31mred");
  EXPECT_LT(ReasonInLog(std::string(5000, 'x')).size(), 210u);
}

}  // namespace
}  // namespace nodepool::builder
