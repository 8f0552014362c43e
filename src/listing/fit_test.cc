#include "listing/fit.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "listing/shown_text.h"

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

const WallTime kNow = FromSeconds(1000);

TEST(BlocksTest, EveryRowIsABlockOfTheTextsThatItHas) {
  Listing listing{{{.key = "id", .title = "ID"},
                   {.key = "state", .title = "State", .kind = Kind::kState},
                   {.key = "age", .title = "Age", .kind = Kind::kTime},
                   {.key = "az", .title = "AZ"},
                   {.key = "comment", .title = "Allocated To"}},
                  {}};
  listing.rows.push_back({"1", "ready", 939, nullptr, "me"});
  listing.rows.push_back({"2", "hold", 1000, nullptr, nullptr});
  EXPECT_EQ(ToBlocks(listing, kNow, Colors::kNone, 80),
            "ID:           1\n"
            "State:        ready\n"
            "Age:          00:00:01:01\n"
            "Allocated To: me\n"
            "\n"
            "ID:           2\n"
            "State:        hold\n"
            "Age:          00:00:00:00");
  EXPECT_NE(ToBlocks(listing, kNow, Colors::kStates, 80).find("State:        \x1b[32mready\x1b[0m\n"),
            std::string::npos);
}

TEST(BlocksTest, SentencesAreBrokenAtBlanksAndNothingIsCut) {
  Listing listing{{{.key = "why", .title = "Why"}}, {}};
  listing.rows.push_back({"one two three\nfour"});
  listing.rows.push_back({"0123456789-0123456789 and more"});
  EXPECT_EQ(ToBlocks(listing, kNow, Colors::kNone, 13),
            "Why: one two\n"
            "     three\n"
            "     four\n"
            "\n"
            "Why: 0123456789-0123456789 and more");
}

TEST(DisplayWidthTest, WideCharactersCountTwoAndCombiningOnesNone) {
  EXPECT_EQ(DisplayWidth("abc"), 3u);
  EXPECT_EQ(DisplayWidth("日本"), 4u);
  EXPECT_EQ(DisplayWidth("e\u0301"), 1u);
  EXPECT_EQ(DisplayWidth("é"), 1u);
}

TEST(DisplayWidthTest, MalformedUtf8TakesOneColumnAByte) {
  EXPECT_EQ(DisplayWidth("\xff\xfe"), 2u);
  EXPECT_EQ(DisplayWidth("\xe6\x97"), 2u);  // cut off in the middle
  EXPECT_EQ(DisplayWidth(""), 0u);
}

TEST(DisplayWidthTest, WhatIsTooWideKeepsItsBeginning) {
  EXPECT_EQ(CutToWidth("ubuntu-jammy", 12), "ubuntu-jammy");
  EXPECT_EQ(CutToWidth("ubuntu-jammy", 9), "ubuntu-j…");
  EXPECT_EQ(CutToWidth("ubuntu-jammy", 1), "…");
  EXPECT_EQ(CutToWidth("日本語", 4), "日…");
  EXPECT_EQ(CutToWidth("日本語", 6), "日本語");
  EXPECT_EQ(CutToWidth("e\u0301e\u0301e\u0301", 2), "e\u0301…");
  EXPECT_EQ(CutToWidth("", 1), "");
}

TEST(WrapTest, LinesAreBrokenAtBlanks) {
  EXPECT_EQ(Wrap("- the cloud is full", 12, 2), "- the cloud\n  is full");
  EXPECT_EQ(Wrap("- the cloud is full", 80, 2), "- the cloud is full");
  EXPECT_EQ(Wrap("", 80, 2), "");
}

TEST(WrapTest, ALongWordIsCut) { EXPECT_EQ(Wrap("- see 4d1f0c2a-7b1e-4a0c", 12, 2), "- see\n  4d1f0c2a-…"); }

TEST(WrapTest, AnyWidthWillDo) { EXPECT_EQ(Wrap("ab c", 1, 2), "…\n  c"); }

TEST(UuidsTest, EightDigitsStay) {
  EXPECT_EQ(ShortenUuids("4d1f0c2a-7b1e-4a0c-9d3f-0123456789ab"), "4d1f0c2a…");
  EXPECT_EQ(ShortenUuids("7f2d078703b34af08fae429893d49341"), "7f2d0787…");
}

TEST(UuidsTest, WhatIsAroundThemStays) {
  EXPECT_EQ(ShortenUuids("vm-PoolWorker.fake-cloud-main-986e7f260efc4d27b8b39e1923dda19c"),
            "vm-PoolWorker.fake-cloud-main-986e7f26…");
  EXPECT_EQ(ShortenUuids("a-986e7f260efc4d27b8b39e1923dda19c,b-986e7f260efc4d27b8b39e1923dda19d"),
            "a-986e7f26…,b-986e7f26…");
}

TEST(UuidsTest, OtherTextsStay) {
  for (const char* text : {"", "i-17", "0000000042", "7f2d078703b34af08fae429893d4934", "日本",
                           "7f2d078703b34af08fae429893d49341f", "x7f2d078703b34af08fae429893d49341"}) {
    EXPECT_EQ(ShortenUuids(text), text);
  }
}

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
