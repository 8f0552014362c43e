#include "base/json_entries.h"

#include <gtest/gtest.h>

#include "base/json_fields.h"

namespace nodepool {
namespace {

TEST(JsonEntries, TextThatIsNoJsonIsNull) {
  EXPECT_TRUE(ParsedJson("{").is_null());
  EXPECT_TRUE(ParsedJson("").is_null());
  EXPECT_EQ(ParsedJson("[1]").get_array().size(), 1u);
}

TEST(JsonEntries, OnlyObjectsOfListsAreRead) {
  boost::json::value value = ParsedJson(R"({"list": [{"a": 1}, 2, {"a": 3}], "odd": [7], "none": {}})");
  const boost::json::object& object = value.get_object();
  ASSERT_EQ(ObjectsIn(object, "list").size(), 2u);
  EXPECT_EQ(NumberIn(*ObjectsIn(object, "list").back(), "a"), 3);
  EXPECT_EQ(ObjectsIn(object, "list", 2).size(), 1u);
  EXPECT_TRUE(ObjectsIn(object, "none").empty());
  EXPECT_EQ(NumberIn(*FirstIn(object, "list"), "a"), 1);
  EXPECT_EQ(FirstIn(object, "odd"), nullptr);
  EXPECT_EQ(FirstIn(object, "missing"), nullptr);
}

TEST(JsonEntries, MembersAsTexts) {
  boost::json::value value = ParsedJson(R"({"a": "b", "n": 7, "odd": []})");
  EXPECT_EQ(TextsIn(value.if_object()),
            (std::map<std::string, std::string>{{"a", "b"}, {"n", "7"}, {"odd", ""}}));
  EXPECT_TRUE(TextsIn(nullptr).empty());
  EXPECT_EQ(ObjectOf({{"a", "b"}}), (boost::json::object{{"a", "b"}}));
}

}  // namespace
}  // namespace nodepool
