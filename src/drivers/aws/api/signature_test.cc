#include "drivers/aws/api/signature.h"

#include <gtest/gtest.h>

#include "base/encoding.h"
#include "base/time_text.h"

namespace nodepool::drivers::aws {
namespace {

// The example key of AWS's documentation and test suite.
const Credentials kExample{.key_id = "AKIDEXAMPLE", .secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};

std::string Authorization(const net::HttpCall& call, const SigningScope& scope,
                          const Credentials& credentials = kExample) {
  WallTime now = ParseIso8601("2015-08-30T12:36:00Z").value();
  for (const auto& [name, value] : SignatureHeaders(call, credentials, scope, now)) {
    if (name == "Authorization") return value;
  }
  return "";
}

std::string SignatureOf(const net::HttpCall& call, const SigningScope& scope,
                        const Credentials& credentials = kExample) {
  std::string header = Authorization(call, scope, credentials);
  return header.substr(header.rfind('=') + 1);
}

net::HttpCall Get(std::string url) {
  net::HttpCall call;
  call.url = std::move(url);
  return call;
}

// Test vectors that AWS publishes: "get-vanilla" and "post-x-www-form-urlencoded" of its suite, and the
// worked example of a call of IAM.
TEST(SignatureTest, PublishedVectors) {
  const SigningScope suite{"us-east-1", "service"};
  EXPECT_EQ(Authorization(Get("https://example.amazonaws.com/"), suite),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
            "SignedHeaders=host;x-amz-date, "
            "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
  net::HttpCall post = Get("https://example.amazonaws.com/");
  post.method = "POST";
  post.headers = {{"Content-Type", "application/x-www-form-urlencoded"}};
  post.body = "Param1=value1";
  EXPECT_EQ(SignatureOf(post, suite), "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a");
  net::HttpCall list = Get("https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08");
  list.headers = {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}};
  EXPECT_EQ(SignatureOf(list, {"us-east-1", "iam"}),
            "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7");
  EXPECT_EQ(Hex(SigningKey(kExample.secret, "20150830", {"us-east-1", "iam"})),
            "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9");
}

// Computed by a short program of hmac and sha256 alone.
TEST(SignatureTest, TheTokenOfTemporaryCredentialsIsSigned) {
  Credentials temporary = kExample;
  temporary.session_token = "tok/en+==";
  net::HttpCall call = Get("https://example.amazonaws.com");
  EXPECT_EQ(SignatureOf(call, {"us-east-1", "service"}, temporary),
            "162ff216448699490397502284a0c7b7185a4e4e989c79798fe196d1ca815eb2");
  net::HttpHeaders headers = SignatureHeaders(call, temporary, {"us-east-1", "service"}, FromSeconds(0));
  EXPECT_EQ(headers.at(0), (std::pair<std::string, std::string>("X-Amz-Date", "19700101T000000Z")));
  EXPECT_EQ(headers.at(1).second, "tok/en+==");
}

std::string LineOf(const net::HttpCall& call, int number, const std::string& service = "service") {
  std::string text = CanonicalRequest(call, {"us-east-1", service});
  for (; number > 0; --number) text.erase(0, text.find('\n') + 1);
  return text.substr(0, text.find('\n'));
}

TEST(SignatureTest, KeysOfS3AreSignedAsTheyAre) {
  EXPECT_EQ(LineOf(Get("https://h/b/a%20b//c"), 1), "/b/a%2520b/c");
  EXPECT_EQ(LineOf(Get("https://h/b/a%20b//c"), 1, "s3"), "/b/a%20b//c");
}

TEST(SignatureTest, ADigestInTheHeadersReplacesThatOfTheBody) {
  net::HttpCall call = Get("https://h/");
  call.headers.emplace_back(kContentDigest, "abc");
  EXPECT_TRUE(CanonicalRequest(call, {"us-east-1", "s3"}).ends_with("\nabc"));
}

TEST(SignatureTest, PathsAreNormalisedAndEncodedOnceMore) {
  EXPECT_EQ(LineOf(Get("https://h"), 1), "/");
  EXPECT_EQ(LineOf(Get("https://h/a/./b/../c//d/"), 1), "/a/c/d/");
  EXPECT_EQ(LineOf(Get("https://h/a%20b"), 1), "/a%2520b");
  EXPECT_EQ(LineOf(Get("https://h/.."), 1), "/");
}

TEST(SignatureTest, QueriesAreSortedAndEncodedInOneWay) {
  EXPECT_EQ(LineOf(Get("https://h/?b=2&a=%41&a=1&c&d=x%2fy&e=%"), 2), "a=1&a=A&b=2&c=&d=x%2Fy&e=%25");
  EXPECT_EQ(LineOf(Get("https://h?x=1#part"), 2), "x=1");
}

TEST(SignatureTest, HeadersAreLowerCaseSortedAndFolded) {
  net::HttpCall call = Get("https://H:443/");
  call.headers = {{"X-Amz-B", "  two   words "}, {"Accept", "a"}, {"X-Amz-B", "again"}};
  EXPECT_EQ(LineOf(call, 3), "accept:a");
  EXPECT_EQ(LineOf(call, 4), "host:h");
  EXPECT_EQ(LineOf(call, 5), "x-amz-b:two words,again");
  EXPECT_EQ(LineOf(Get("http://h:80/"), 3), "host:h");
  EXPECT_EQ(LineOf(Get("http://h:8080/"), 3), "host:h:8080");
  EXPECT_EQ(LineOf(Get("https://h:80/"), 3), "host:h:80");
}

}  // namespace
}  // namespace nodepool::drivers::aws
