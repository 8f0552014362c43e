#include "cli/commands/token.h"

#include <gmock/gmock.h>

#include <sstream>

#include "base/password_hash.h"

namespace nodepool::cli {
namespace {

using ::testing::HasSubstr;

TEST(TokenTest, TheEntryHasWhatIsAskedFor) {
  TokenOptions options{"ci", {"request"}, 20, {"small", "it's *"}, 200, "team a"};
  EXPECT_EQ(TokenEntry(options, "$hash"),
            "webapp-tokens:\n"
            "  - name: 'ci'\n"
            "    hash: '$hash'\n"
            "    scopes: [request]\n"
            "    max-nodes: 20\n"
            "    labels: ['small', 'it''s *']\n"
            "    priority: 200\n"
            "    tenant: 'team a'\n");
}

// REQ-23
TEST(TokenTest, TheHashIsThatOfTheSecret) {
  std::ostringstream out;
  EXPECT_EQ(MakeToken({"ci", {"request"}}, out), 0);
  std::string text = out.str();
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
