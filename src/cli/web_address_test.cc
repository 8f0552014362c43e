#include "cli/web_address.h"

#include <gtest/gtest.h>

namespace nodepool::cli {
namespace {

TEST(WebAddressTest, IsTheHostsNameOrTheOneAddressOfThisHost) {
  config::WebAppSettings web;
  EXPECT_EQ(WebAddress(web, "np01", "np02"), "http://np01:8005/");
  EXPECT_EQ(WebAddress(web, "np02", "np02"), "http://np02:8005/") << "it listens on every address";
  web.listen_address = "127.0.0.1";
  web.port = 80;
  EXPECT_EQ(WebAddress(web, "np02", "np02"), "http://127.0.0.1:80/");
  EXPECT_EQ(WebAddress(web, "np01", "np02"), "http://np01:80/") << "127.0.0.1 is another host there";
  web.listen_address = "::1";
  EXPECT_EQ(WebAddress(web, "np02", "np02"), "http://[::1]:80/");
  web.tls.emplace();
  EXPECT_EQ(WebAddress(web, "np02", "np02"), "https://np02:80/") << "as the certificate says";
  web.listen_address = "::";
  EXPECT_EQ(WebAddress(web, "2001:db8::1", "np02"), "https://[2001:db8::1]:80/");
}

}  // namespace
}  // namespace nodepool::cli
