#include "listing/fit.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "listing/display_width.h"

namespace nodepool::listing {
namespace {

using Widths = std::vector<std::optional<std::size_t>>;

constexpr Fit kAlways{Importance::kAlways}, kHigh{Importance::kHigh}, kLow{Importance::kLow};

std::string Fitted(const Listing& listing, std::size_t width) {
  return FitTable(listing, WallTime(), Colors::kNone, width).text;
}

TEST(FitTest, WhatHasRoomIsShownWhole) {
  EXPECT_EQ(FitColumns({{kAlways, 10, 2}, {kName, 20, 5}}, 37, Frame::kBars), (Widths{10, 20}));
}

TEST(FitTest, TheWidestIsCutFirst) {
  EXPECT_EQ(FitColumns({{kAlways, 10, 2}, {kName, 20, 5}, {kName, 40, 5}}, 60, Frame::kBars),
            (Widths{10, 20, 20}));
  EXPECT_EQ(FitColumns({{kAlways, 10, 2}, {kName, 14, 5}, {kName, 40, 5}}, 60, Frame::kBars),
            (Widths{10, 14, 26}));
}

TEST(FitTest, NothingIsCutBelowItsTitle) {
  EXPECT_EQ(FitColumns({{kAlways, 10, 2}, {kName, 20, 19}}, 36, Frame::kBars), (Widths{10, 19}));
}

TEST(FitTest, TheLeastImportantIsLeftOut) {
  EXPECT_EQ(FitColumns({{kAlways, 10, 2}, {kLow, 10, 2}, {kHigh, 10, 2}}, 30, Frame::kBars),
            (Widths{10, std::nullopt, 10}));
  EXPECT_EQ(FitColumns({{kAlways, 10, 2}, {kHigh, 10, 2}, {kHigh, 10, 2}}, 30, Frame::kBars),
            (Widths{10, 10, std::nullopt}))
      << "among equals the left one stays";
}

TEST(FitTest, ASmallColumnTakesTheRoomThatABiggerOneCouldNot) {
  EXPECT_EQ(FitColumns({{kAlways, 10, 2}, {kHigh, 30, 2}, {kLow, 8, 2}}, 30, Frame::kBars),
            (Widths{10, std::nullopt, 8}));
}

TEST(FitTest, SomeColumnsAreShownHoweverNarrowItIs) {
  EXPECT_EQ(FitColumns({{kAlways, 10, 2}, {kHigh, 5, 2}}, 3, Frame::kBars), (Widths{10, std::nullopt}));
}

TEST(FitTest, EmptyColumnsAreLeftOut) {
  Listing listing{{{"id", "ID"}, {"ipv6", "IPv6"}, {"az", "AZ"}}, {{"1", nullptr, "a"}, {"2", "", nullptr}}};
  EXPECT_EQ(Fitted(listing, 80),
            "+----+----+\n"
            "| ID | AZ |\n"
            "+----+----+\n"
            "| 1  | a  |\n"
            "| 2  |    |\n"
            "+----+----+");
}

TEST(FitTest, AListWithoutRowsKeepsItsHeader) {
  EXPECT_EQ(Fitted({{{"id", "ID"}, {"az", "AZ"}}, {}}, 80),
            "+----+----+\n"
            "| ID | AZ |\n"
            "+----+----+\n"
            "+----+----+");
}

TEST(FitTest, UuidsAreShortenedWhereThereIsNoRoom) {
  Listing listing{{{.key = "id", .title = "ID", .fit = kAlways},
                   {.key = "server_id", .title = "Server ID", .fit = kLongId}},
                  {{"1", "4d1f0c2a-7b1e-4a0c-9d3f-0123456789ab"}}};
  EXPECT_EQ(Fitted(listing, 45),
            "+----+--------------------------------------+\n"
            "| ID | Server ID                            |\n"
            "+----+--------------------------------------+\n"
            "| 1  | 4d1f0c2a-7b1e-4a0c-9d3f-0123456789ab |\n"
            "+----+--------------------------------------+");
  EXPECT_EQ(Fitted(listing, 44),
            "+----+-----------+\n"
            "| ID | Server ID |\n"
            "+----+-----------+\n"
            "| 1  | 4d1f0c2a… |\n"
            "+----+-----------+");
}

TEST(FitTest, WhatIsLeftOutIsNamed) {
  Listing listing{{{.key = "id", .title = "ID", .fit = kAlways},
                   {.key = "state", .title = "State", .kind = Kind::kState, .fit = kHigh},
                   {.key = "port", .title = "Port", .fit = kLow}},
                  {{"0000000001", "deleting", 22}}};
  EXPECT_EQ(Fitted(listing, 27),
            "+------------+----------+\n"
            "| ID         | State    |\n"
            "+------------+----------+\n"
            "| 0000000001 | deleting |\n"
            "+------------+----------+");
  EXPECT_EQ(FitTable(listing, WallTime(), Colors::kNone, 27).left_out, std::vector<std::string>{"Port"});
}

TEST(FitTest, EachLineOfACellIsCut) {
  Listing listing{{{.key = "why", .title = "Why", .fit = {Importance::kAlways, 6}}},
                  {{"the cloud is full\nno"}, {"日本語日本語"}}};
  EXPECT_EQ(Fitted(listing, 12),
            "+----------+\n"
            "| Why      |\n"
            "+----------+\n"
            "| the clo… |\n"
            "| no       |\n"
            "| 日本語…  |\n"
            "+----------+");
}

TEST(FitTest, AmountsAreWords) {
  Listing listing{{{"used", "Used"}, {"free", "Free"}, {"data", "Data"}},
                  {{boost::json::object{{"cores", 2}, {"instances", 1}}, boost::json::object(),
                    boost::json::object{{"a", "b"}}}}};
  EXPECT_EQ(Fitted(listing, 80),
            "+----------------------+-----------+\n"
            "| Used                 | Data      |\n"
            "+----------------------+-----------+\n"
            "| cores 2, instances 1 | {\"a\":\"b\"} |\n"
            "+----------------------+-----------+");
}

TEST(FitTest, NoLineIsWiderThanTheTerminal) {
  Listing listing{{{.key = "id", .title = "ID", .fit = kAlways},
                   {.key = "a", .title = "Provider", .fit = kName},
                   {.key = "b", .title = "State", .fit = kHigh},
                   {.key = "c", .title = "Server ID", .fit = kLongId},
                   {.key = "d", .title = "Why", .fit = kSentence}},
                  {{"0000000001", "a-provider-of-some-length", "ready", "4d1f0c2a7b1e4a0c9d3f0123456789ab",
                    "the quota of the cloud is used up"}}};
  for (std::size_t width = 14; width < 140; ++width) {
    for (const std::string& line : Split(Fitted(listing, width), '\n'))
      EXPECT_LE(DisplayWidth(line), width) << line;
  }
}

}  // namespace
}  // namespace nodepool::listing
