#include "web/live/entries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace nodepool::web {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PublishedTest : public ::testing::Test {
 protected:
  std::vector<std::string> Seen() { return std::exchange(seen_, {}); }

  std::vector<std::string> seen_;
  Published::See see_ = [this](const std::string& key, const std::string* json) {
    seen_.push_back(key + (json != nullptr ? "=" + *json : " is gone"));
  };
  Published published_;
};

TEST_F(PublishedTest, OnlyDifferencesAreShown) {
  published_.Replace({{"a", "1"}, {"b", "1"}, {"c", "1"}}, see_);
  EXPECT_THAT(Seen(), ElementsAre("a=1", "b=1", "c=1"));
  published_.Replace({{"a", "1"}, {"b", "2"}, {"d", "1"}}, see_);
  EXPECT_THAT(Seen(), ElementsAre("c is gone", "b=2", "d=1"));
  published_.Replace({{"a", "1"}, {"b", "2"}, {"d", "1"}}, see_);
  EXPECT_THAT(Seen(), IsEmpty());
}

TEST_F(PublishedTest, SingleEntries) {
  published_.Set("a", "1", see_);
  published_.Set("a", "1", see_);
  published_.Set("a", "2", see_);
  published_.Set("a", std::nullopt, see_);
  published_.Set("a", std::nullopt, see_);
  EXPECT_THAT(Seen(), ElementsAre("a=1", "a=2", "a is gone"));
}

}  // namespace

}  // namespace nodepool::web
