#include "listing/row_filter.h"

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

}  // namespace
}  // namespace nodepool::listing
