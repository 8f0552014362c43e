#include "listing/aged_text.h"

#include <gtest/gtest.h>

namespace nodepool::listing {
namespace {

// operations.5.3.
TEST(AgedTextTest, AgesHaveFourPartsOfAtLeastTwoDigits) {
  EXPECT_EQ(FormatAge(std::chrono::seconds(0)), "00:00:00:00");
  EXPECT_EQ(FormatAge(std::chrono::milliseconds(59'999)), "00:00:00:59");
  EXPECT_EQ(FormatAge(std::chrono::days(3) + std::chrono::hours(4) + std::chrono::minutes(5) +
                      std::chrono::seconds(6)),
            "03:04:05:06");
  EXPECT_EQ(FormatAge(std::chrono::days(1234)), "1234:00:00:00");
}

TEST(AgedTextTest, NegativeAgesBorrowFromTheDays) {
  EXPECT_EQ(FormatAge(std::chrono::milliseconds(-1500)), "-1:23:59:58");
  EXPECT_EQ(FormatAge(-std::chrono::days(12)), "-12:00:00:00");
}

TEST(AgedTextTest, AgesAreThoseOfTheMomentItIsShown) {
  AgedText text;
  text.AddAge(FromSeconds(100), AgedText::Style::kClock);
  text.text() += " and ";
  text.AddAge(FromSeconds(150), AgedText::Style::kSeconds);
  text.text() += " s";
  std::string shown = "> ";
  text.AppendTo(shown, FromSeconds(161.5));
  EXPECT_EQ(shown, "> 00:00:01:01 and 11 s");
  text.Clear();
  text.AppendTo(shown, FromSeconds(161.5));
  EXPECT_EQ(shown, "> 00:00:01:01 and 11 s");
}

}  // namespace
}  // namespace nodepool::listing
