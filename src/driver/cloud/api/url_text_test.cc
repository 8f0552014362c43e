#include "driver/cloud/api/url_text.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace nodepool::driver::cloud::api {
namespace {

TEST(PercentEncoded, LeavesOnlyWhatIsSafe) {
  EXPECT_EQ(PercentEncoded("aZ09-_.~"), "aZ09-_.~");
  EXPECT_EQ(PercentEncoded("a b&c=d/e?%+"), "a%20b%26c%3Dd%2Fe%3F%25%2B");
  EXPECT_EQ(PercentEncoded("\xc3\xbc\n"), "%C3%BC%0A");
}

TEST(ServiceUrl, IsAsConfiguredOrRefused) {
  EXPECT_EQ(ServiceUrl("https://host:1/v1//", "X"), "https://host:1/v1");
  EXPECT_EQ(ServiceUrl("", "X"), "");
  try {
    ServiceUrl("ftp://user:secret@host", "X_ENDPOINT");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "X_ENDPOINT is no URL with http or https: ftp://host/");
  }
}

TEST(QueryOf, IsWhatFollowsTheMark) {
  EXPECT_EQ(QueryOf("http://x/a?m=3&n=4"), "m=3&n=4");
  EXPECT_EQ(QueryOf("http://x/a"), "");
}

}  // namespace
}  // namespace nodepool::driver::cloud::api
