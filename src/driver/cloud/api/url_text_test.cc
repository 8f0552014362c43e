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

TEST(LastSegment, IsANameWhateverTheHost) {
  EXPECT_EQ(LastSegment("https://host/v1/zones/zone-a"), "zone-a");
  EXPECT_EQ(LastSegment("zone-a"), "zone-a");
  EXPECT_EQ(LastSegment("zones/"), "");
}

TEST(QueryOf, IsWhatFollowsTheMark) {
  EXPECT_EQ(QueryOf("http://x/a?m=3&n=4"), "m=3&n=4");
  EXPECT_EQ(QueryOf("http://x/a"), "");
}

TEST(ParameterOf, IsFoundByItsWholeName) {
  EXPECT_EQ(ParameterOf("http://x/a?upload=no&upload_id=a%20b&upload_id=c", "upload_id"), "a%20b");
  EXPECT_EQ(ParameterOf("http://x/a?m=", "m"), "");
  EXPECT_EQ(ParameterOf("http://x/a?m", "m"), "");
  EXPECT_EQ(ParameterOf("http://x/upload_id=3", "upload_id"), "");
}

}  // namespace
}  // namespace nodepool::driver::cloud::api
