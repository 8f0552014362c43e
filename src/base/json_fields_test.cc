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

}  // namespace
}  // namespace nodepool
