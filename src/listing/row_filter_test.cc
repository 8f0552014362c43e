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
  columns.resize(2);
  std::optional<FilterFault> fault = FaultOf({{Kind::kLabel, {"small"}}}, columns);
  EXPECT_EQ(fault->kind, Kind::kLabel);
  EXPECT_EQ(fault->message, "there is no label in this list; it has only state");
  columns.resize(1);
  EXPECT_EQ(FaultOf({{Kind::kState, {"ready"}}}, columns)->message,
            "there is no state in this list; it has nothing to choose rows by");
}

}  // namespace
}  // namespace nodepool::listing
