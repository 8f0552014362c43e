#include "listing/selection.h"

#include <gtest/gtest.h>

namespace nodepool::listing {

namespace {

Listing Example() {
  return {{{"id", "ID"},
           {"state", "State", Kind::kState, {"ready", "hold"}},
           {"label", "Label", Kind::kLabel},
           {"provider", "Provider", Kind::kProvider}},
          {{"1", "ready", boost::json::array{"small", "tiny"}, "a"},
           {"2", "hold", boost::json::array{"tiny"}, "b"},
           {"3", "ready", "small", nullptr},
           {"4", nullptr, boost::json::array(), "a"}}};
}

std::string Kept(const RowFilter& filter) {
  Listing listing = Example();
  EXPECT_EQ(FaultOf(filter, listing.columns), std::nullopt);
  Keep(listing, filter);
  std::string ids;
  for (const auto& row : listing.rows) ids += *row[0].text();
  return ids;
}

TEST(RowFilterTest, RowsHaveOneWordOfEachKind) {
  EXPECT_EQ(Kept({}), "1234");
  EXPECT_EQ(Kept({{Kind::kState, {"ready"}}}), "13");
  EXPECT_EQ(Kept({{Kind::kState, {"ready", "hold"}}}), "123");
  EXPECT_EQ(Kept({{Kind::kLabel, {"small"}}}), "13") << "alone or in a list";
  EXPECT_EQ(Kept({{Kind::kLabel, {"tiny"}}, {Kind::kProvider, {"b", "c"}}}), "2");
  EXPECT_EQ(Kept({{Kind::kProvider, {""}}}), "");
}

TEST(RowFilterTest, WhatCannotBeFoundIsSaid) {
  std::vector<Column> columns = Example().columns;
  EXPECT_EQ(FaultOf({{Kind::kState, {"redy"}}}, columns)->message,
            "\"redy\" is no state; there is ready, hold");
  EXPECT_EQ(FaultOf({{Kind::kLabel, {"redy"}}}, columns), std::nullopt) << "labels may be anything";
}

bool MayMatch(const RowFilter& filter, std::string_view record, const std::set<std::string>& also = {}) {
  return RecordFilter(filter, also).MayMatch(record);
}

// operations.16.27
TEST(RecordFilterTest, ARecordNeedsAWordOfEachKind) {
  RowFilter filter{{Kind::kProvider, {"east", "west"}}, {Kind::kLabel, {"small"}}};
  EXPECT_TRUE(MayMatch(filter, R"({"provider": "west", "type": ["large", "small"]})"));
  EXPECT_FALSE(MayMatch(filter, R"({"provider": "west", "type": ["large"]})"));
  EXPECT_FALSE(MayMatch(filter, R"({"provider": "north", "type": ["small"]})"));
  EXPECT_TRUE(MayMatch(filter, R"({"provider": "north", "comment": "east", "type": ["small"]})"));
  EXPECT_TRUE(MayMatch({}, "{}"));
}

// operations.16.27
TEST(RecordFilterTest, ALongerNameIsAnotherOne) {
  RowFilter filter{{Kind::kProvider, {"cloud-1"}}};
  EXPECT_FALSE(MayMatch(filter, R"({"provider": "cloud-10", "launcher": "np-PoolWorker.cloud-1-main"})"));
}

// operations.16.27
TEST(RecordFilterTest, HoweverTheWordIsWritten) {
  for (const char* written : {R"({"provider": "e\u0061st"})", R"({"provider": "\u0065ast"})",
                              R"({"user_data": "{\"a\": 1}", "provider": "\u0065ast"})"}) {
    EXPECT_TRUE(MayMatch({{Kind::kProvider, {"east"}}}, written)) << written;
  }
  EXPECT_TRUE(MayMatch({{Kind::kProvider, {"a/b"}}}, R"({"provider": "a\/b"})"));
  EXPECT_TRUE(MayMatch({{Kind::kProvider, {"5"}}}, R"({"provider": 5})"));
  EXPECT_TRUE(MayMatch({{Kind::kProvider, {"5"}}}, R"({"provider": "5"})"));
  EXPECT_TRUE(MayMatch({{Kind::kProvider, {"true"}}}, R"({"provider": true})"));
  EXPECT_TRUE(MayMatch({{Kind::kProvider, {"say \"so\""}}}, R"({"provider": "say \"so\""})"));
  EXPECT_TRUE(MayMatch({{Kind::kProvider, {"süd"}}}, R"({"provider": "s\u00fcd"})"));
  EXPECT_TRUE(MayMatch({{Kind::kProvider, {"süd"}}}, "{\"provider\": \"süd\"}"));
}

// operations.16.27
TEST(RecordFilterTest, EscapesThatOrdinaryRecordsHaveDoNotMatter) {
  EXPECT_FALSE(MayMatch({{Kind::kProvider, {"east"}}},
                        R"({"provider": "west", "user_data": "{\"system\": \"\\u\", \"x\": \"\n\"}"})"));
  for (const char* cut : {"\\", "\"\\", "x\\\\", "x\\\\\\"}) {
    EXPECT_FALSE(MayMatch({{Kind::kProvider, {"east"}}}, cut)) << cut;
  }
}

// operations.16.27
TEST(RecordFilterTest, WordsThatMatterInAnyRecord) {
  RowFilter filter{{Kind::kProvider, {"east"}}, {Kind::kLabel, {"unheard-of"}}};
  EXPECT_TRUE(MayMatch(filter, R"({"provider": "west", "type": ["unheard-of"]})", {"unheard-of"}));
  EXPECT_FALSE(MayMatch(filter, R"({"provider": "west", "type": ["unheard-of"]})"));
}

Listing ThreeColumns() {
  return {{{"id", "ID"}, {"ipv6", "IPv6"}, {.key = "why", .title = "Why", .is_extra = true}},
          {{"1", "::1", "it fails"}}};
}

TEST(ChooseColumnsTest, AreNamedByKeyOrTitle) {
  std::vector<Column> columns = ThreeColumns().columns;
  EXPECT_EQ(KeysOf({"why", " id", "IPV6"}, columns), (std::vector<std::string>{"why", "id", "ipv6"}));
  Expected<std::vector<std::string>> keys = KeysOf({"state"}, columns);
  ASSERT_FALSE(keys);
  EXPECT_STREQ(keys.error().what(), "there is no column \"state\"; there is id, ipv6, why");
}

TEST(ChooseColumnsTest, TheOrderIsThatOfTheKeys) {
  Listing listing = ThreeColumns();
  KeepColumns(listing, {"why", "id"});
  EXPECT_EQ(ToJson(listing, WallTime()), R"([{"why":"it fails","id":"1"}])");
}

TEST(ChooseColumnsTest, ExtraColumnsGo) {
  Listing listing = ThreeColumns();
  DropExtraColumns(listing);
  EXPECT_EQ(ToJson(listing, WallTime()), R"([{"id":"1","ipv6":"::1"}])");
}

}  // namespace

}  // namespace nodepool::listing
