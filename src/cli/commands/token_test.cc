#include <gmock/gmock.h>

#include "base/crypto.h"
#include "cli/fixture_for_test.h"

namespace nodepool::cli {
namespace {

using ::testing::HasSubstr;

class TokenTest : public CommandTest {};

TEST_F(TokenTest, TheEntryHasWhatIsAskedFor) {
  std::string text = Shown({"token", "ci", "--max-nodes", "20", "--label", "small", "--label", "it's *",
                            "--priority", "200", "--tenant", "team a"});
  EXPECT_THAT(text, HasSubstr("webapp-tokens:\n  - name: 'ci'\n    hash: '$sha256$"));
  EXPECT_THAT(text, HasSubstr("'\n"
                              "    scopes: [request]\n"
                              "    max-nodes: 20\n"
                              "    labels: ['small', 'it''s *']\n"
                              "    priority: 200\n"
                              "    tenant: 'team a'\n"));
}

// REQ-23
TEST_F(TokenTest, TheHashIsThatOfTheSecret) {
  std::string text = Shown({"token", "ci"});
  std::size_t begin = text.find("ci.") + 3;
  std::string secret = text.substr(begin, text.find('\n', begin) - begin);
  EXPECT_EQ(secret.size(), 64u);
  begin = text.find("$sha256$");
  std::string hash = text.substr(begin, text.find('\'', begin) - begin);
  EXPECT_TRUE(MatchesHash(secret, hash));
  EXPECT_EQ(text.find(secret, text.find(secret) + 1), std::string::npos) << "it is printed once";
}

}  // namespace
}  // namespace nodepool::cli
