#include "daemon/web_address.h"

#include <gtest/gtest.h>

namespace nodepool::daemon {

namespace {

TEST(HostNameTest, TheFirstNameWithADotIsTheQualifiedOne) {
  EXPECT_EQ(QualifiedName({"nb01.example.org", {"nb01", "other.example.org"}}), "nb01.example.org");
  EXPECT_EQ(QualifiedName({"nb01", {"builder", "nb01.example.org", "nb01.example.com"}}), "nb01.example.org");
  EXPECT_EQ(QualifiedName({"localhost", {"nb01"}}), "localhost");
  EXPECT_EQ(QualifiedName({"localhost", {}}), "localhost");
}

TEST(HostNameTest, ASlowResolverIsNotAwaited) {
  EXPECT_EQ(FullyQualifiedHostname(Duration::zero()).empty(), WholeHostname().empty());
  EXPECT_EQ(Hostname(), WholeHostname().substr(0, Hostname().size()));
}

TEST(WebAddressTest, IsTheHostsNameOrTheOneAddressOfThisHost) {
  config::WebAppSettings web;
  EXPECT_EQ(WebAddress(web, "np01", "np02"), "http://np01:8005/");
  EXPECT_EQ(WebAddress(web, "np02", "np02"), "http://np02:8005/") << "it listens on every address";
  web.listen_address = "127.0.0.1";
  web.port = 80;
  EXPECT_EQ(WebAddress(web, "np02", "np02"), "http://127.0.0.1:80/");
  EXPECT_EQ(WebAddress(web, "np01", "np02"), "http://np01:80/") << "127.0.0.1 is another host there";
  EXPECT_EQ(WebAddress(web, {8080, true}, "np01", "np02"), "https://np01:8080/") << "as it announces";
  web.listen_address = "::1";
  EXPECT_EQ(WebAddress(web, "np02", "np02"), "http://[::1]:80/");
  web.tls.emplace();
  EXPECT_EQ(WebAddress(web, "np02", "np02"), "https://np02:80/") << "as the certificate says";
  web.listen_address = "::";
  EXPECT_EQ(WebAddress(web, "2001:db8::1", "np02"), "https://[2001:db8::1]:80/");
}

}  // namespace

}  // namespace nodepool::daemon
