#include "runners/github/login.h"

#include <gtest/gtest.h>

namespace nodepool::runners::github {
namespace {

// RUN-8
TEST(ConfigUrlTest, AddressesAndScopes) {
  struct Case {
    const char* url;
    const char* api;
    const char* actions;
  };
  for (const Case& each : {
           Case{"https://github.com/octo", "https://api.github.com", "/orgs/octo/actions"},
           Case{"https://www.github.com/octo/app", "https://api.github.com", "/repos/octo/app/actions"},
           Case{"https://github.com:443/octo", "https://api.github.com", "/orgs/octo/actions"},
           Case{"https://acme.ghe.com/enterprises/acme", "https://api.acme.ghe.com",
                "/enterprises/acme/actions"},
           Case{"https://git.example.org/octo", "https://git.example.org/api/v3", "/orgs/octo/actions"},
           Case{"https://git.example.org:8443/octo/app", "https://git.example.org:8443/api/v3",
                "/repos/octo/app/actions"},
       }) {
    Expected<Scope> scope = ReadConfigUrl(each.url);
    ASSERT_TRUE(scope) << each.url;
    EXPECT_EQ(scope->api, each.api);
    EXPECT_EQ(scope->actions, each.actions);
  }
  EXPECT_EQ(ReadConfigUrl("https://github.com:443/octo")->url, "https://github.com/octo");
}

// RUN-8
TEST(ConfigUrlTest, OthersAreRefused) {
  for (const char* url :
       {"http://github.com/octo", "https://github.com", "https://github.com/a/b/c", "octo", ""})
    EXPECT_FALSE(ReadConfigUrl(url)) << url;
}

}  // namespace
}  // namespace nodepool::runners::github
