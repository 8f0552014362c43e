#include "listing/blocks.h"

#include <gtest/gtest.h>

namespace nodepool::listing {
namespace {

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

}  // namespace
}  // namespace nodepool::listing
