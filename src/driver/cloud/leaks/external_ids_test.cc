#include "driver/cloud/leaks/external_ids.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace nodepool::driver::cloud {
namespace {

TEST(ExternalIdsTest, TheOrderOfKeysDoesNotMatter) {
  ExternalIds ids = {"a", boost::json::parse(R"({"cloud": {"name": "c", "zone": 1}, "vm": "b"})")};
  EXPECT_TRUE(ids.contains("a"));
  EXPECT_TRUE(ids.contains(boost::json::parse(R"({"vm": "b", "cloud": {"zone": 1, "name": "c"}})")));
  EXPECT_FALSE(ids.contains(boost::json::parse(R"({"vm": "c", "cloud": {"zone": 1, "name": "b"}})")));
  EXPECT_FALSE(ids.contains("b"));
  EXPECT_FALSE(ids.contains(nullptr));
}

}  // namespace
}  // namespace nodepool::driver::cloud
