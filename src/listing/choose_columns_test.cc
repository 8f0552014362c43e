#include "listing/choose_columns.h"

#include <gtest/gtest.h>

namespace nodepool::listing {
namespace {

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
