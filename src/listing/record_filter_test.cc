#include "listing/record_filter.h"

#include <gtest/gtest.h>

namespace nodepool::listing {
namespace {

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

}  // namespace
}  // namespace nodepool::listing
