#include "config/web_tokens.h"

#include <gtest/gtest.h>

namespace nodepool::config {
namespace {

TEST(WebTokensTest, Patterns) {
  EXPECT_TRUE(MatchesPattern("small", "small"));
  EXPECT_FALSE(MatchesPattern("smaller", "small"));
  EXPECT_TRUE(MatchesPattern("smaller", "small*"));
  EXPECT_TRUE(MatchesPattern("debian-12-small", "debian-*-small"));
  EXPECT_FALSE(MatchesPattern("debian-small", "debian-*-small"));
  EXPECT_TRUE(MatchesPattern("", "*"));
  EXPECT_FALSE(MatchesPattern("", "a"));
}

TEST(WebTokensTest, Names) {
  EXPECT_TRUE(IsTokenName("ci_2-B"));
  for (std::string bad : {std::string(), std::string("a.b"), std::string("a b"), std::string(65, 'a'),
                          std::string("a\n"), std::string("ä")})
    EXPECT_FALSE(IsTokenName(bad)) << bad;
}

}  // namespace
}  // namespace nodepool::config
