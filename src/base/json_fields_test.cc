#include "base/json_fields.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace nodepool {

namespace {

TEST(JsonFields, MembersOfTheRightKindAreRead) {
  boost::json::value value = boost::json::parse(
      R"({"text": "a", "number": 7, "half": 0.5, "truth": true, "object": {}, "array": [], "null": null})");
  const boost::json::object& object = value.as_object();
  EXPECT_EQ(TextIn(object, "text"), "a");
  EXPECT_EQ(TextIn(object, "number"), "7");
  EXPECT_EQ(NumberIn(object, "half"), 0.5);
  EXPECT_TRUE(TruthIn(object, "truth"));
  EXPECT_NE(ObjectIn(value, "object"), nullptr);
  EXPECT_NE(ArrayIn(value, "array"), nullptr);
}

TEST(JsonFields, MembersOfAnotherKindCountAsMissing) {
  boost::json::value value = boost::json::parse(R"({"text": "a", "null": null, "array": []})");
  const boost::json::object& object = value.as_object();
  for (const char* key : {"text", "null", "missing"}) {
    EXPECT_EQ(NumberIn(object, key), 0);
    EXPECT_FALSE(TruthIn(object, key));
    EXPECT_EQ(ObjectIn(object, key), nullptr);
    EXPECT_EQ(ArrayIn(object, key), nullptr);
  }
  EXPECT_EQ(TextIn(object, "array"), "");
  EXPECT_EQ(ObjectIn(boost::json::value(3), "text"), nullptr);
  EXPECT_EQ(ArrayIn(boost::json::value(), "text"), nullptr);
}

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

TEST(JsonEntries, WhatIsDeepInAnObject) {
  boost::json::value value = ParsedJson(R"({"a": {"list": [{"text": "x", "number": 7}, []]}, "text": "y"})");
  const boost::json::object& object = value.get_object();
  EXPECT_EQ(TextAt(object, "a/list/0/text"), "x");
  EXPECT_EQ(TextAt(object, "a/list/0/number"), "7");
  EXPECT_EQ(TextAt(object, "text"), "y");
  EXPECT_EQ(ObjectAt(object, "a/list/0")->size(), 2u);
  EXPECT_EQ(ObjectAt(object, "a"), object.at("a").if_object());
  for (const char* path :
       {"", "b", "b/c", "a/list/1/text", "a/list/9/text", "a/list/x", "text/x", "a/", "/"}) {
    EXPECT_EQ(TextAt(object, path), "") << path;
    EXPECT_EQ(ObjectAt(object, path), nullptr) << path;
  }
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
