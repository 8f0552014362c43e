#include "drivers/aws/api/credential_fetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "async/testing/virtual_time.h"
#include "base/clock.h"
#include "base/log/logging.h"
#include "driver/cloud/api/api_error.h"
#include "drivers/aws/credentials/credentials_fixture_for_test.h"

namespace nodepool::drivers::aws {

namespace {

using ::testing::HasSubstr;

// Answers calls by "METHOD URL" in place of STS, the metadata service and a container's service.
class ScriptedServices : public net::HttpClient {
 public:
  Task<net::HttpReply> Send(net::HttpCall call) override {
    calls.push_back(call);
    auto answer = answers.find(call.method + " " + call.url);
    if (answer == answers.end()) throw net::HttpError(Verdict::kRetry, "nobody answers", false);
    co_return answer->second;
  }
  std::map<std::string, net::HttpReply> answers;
  std::vector<net::HttpCall> calls;
};

std::string HeaderIn(const net::HttpCall& call, const std::string& name) {
  for (const auto& [key, value] : call.headers) {
    if (key == name) return value;
  }
  return "";
}

class FetchTest : public CredentialsTest {
 protected:
  Credentials Fetch(std::optional<std::string> profile = std::nullopt) {
    account = AccountFor("us-west-2", profile);
    CredentialFetcher fetcher(time.loop(), http, clock, account, variables, profile.has_value());
    return time.Run(fetcher.Fetch());
  }
  std::string FetchError() {
    try {
      Fetch();
    } catch (const Error& error) {
      return error.message();
    }
    return "no error";
  }
  static std::string StsAnswer(const std::string& action, const std::string& key) {
    return "<" + action + "Response><" + action + "Result><Credentials><AccessKeyId>" + key +
           "</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t-" + key +
           "</SessionToken><Expiration>2030-01-01T00:00:00Z</Expiration></Credentials></" + action +
           "Result></" + action + "Response>";
  }

  testing::VirtualTime time;
  ScriptedServices http;
  ServerClock clock{time.loop(), log::Logger("test"), "AWS"};
  Account account;
  const std::string sts = "POST https://sts.us-west-2.amazonaws.com/";
  const std::string metadata = "http://169.254.169.254/latest/";
  const std::string keys =
      R"({"Code": "Success", "AccessKeyId": "M", "SecretAccessKey": "s", "Token": "t",
          "Expiration": "2030-01-01T00:00:00Z"})";
};

// AWS-68
TEST_F(FetchTest, ARoleOfAProfile) {
  Write("credentials", "[keys]\naws_access_key_id = K\naws_secret_access_key = s\n");
  Write("config", "[profile r]\nrole_arn = arn:r\nsource_profile = keys\nexternal_id = e x\n");
  http.answers[sts] = {200, {}, StsAnswer("AssumeRole", "TEMP")};
  Credentials credentials = Fetch("r");
  EXPECT_EQ(credentials.key_id, "TEMP");
  EXPECT_EQ(credentials.session_token, "t-TEMP");
  EXPECT_EQ(credentials.expires, ParseIso8601("2030-01-01T00:00:00Z"));
  EXPECT_EQ(http.calls.at(0).body,
            "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Ar&RoleSessionName=nodepool-1700000000&"
            "DurationSeconds=3600&ExternalId=e%20x");
  EXPECT_THAT(HeaderIn(http.calls.at(0), "Authorization"), HasSubstr("Credential=K/20231114/us-west-2/sts/"));
  http.answers[sts] = {403,
                       {},
                       "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not you</Message></Error>"
                       "</ErrorResponse>"};
  try {
    Fetch("r");
    ADD_FAILURE();
  } catch (const driver::cloud::api::ApiError& error) {
    EXPECT_EQ(error.message(),
              "STS AssumeRole for arn:r: 403 AccessDenied: not you; give the key's user or role this right");
  }
}

// AWS-68
TEST_F(FetchTest, WebIdentityIsNotSignedAndItsFileIsReadEachTime) {
  variables["AWS_ROLE_ARN"] = "arn:w";
  variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = folder + "/token";
  EXPECT_THAT(FetchError(), HasSubstr(folder + "/token cannot be read"));
  http.answers[sts] = {200, {}, StsAnswer("AssumeRoleWithWebIdentity", "WEB")};
  for (const char* token : {"one", "two"}) {
    Write("token", std::string(token) + "\n");
    EXPECT_EQ(Fetch().key_id, "WEB");
    EXPECT_THAT(http.calls.back().body, HasSubstr(std::string("WebIdentityToken=") + token));
    EXPECT_EQ(HeaderIn(http.calls.back(), "Authorization"), "");
  }
  http.answers[sts] = {200, {}, "<AssumeRoleWithWebIdentityResponse/>"};
  EXPECT_THAT(FetchError(), HasSubstr("without credentials"));
}

// AWS-68
TEST_F(FetchTest, MetadataWithAToken) {
  http.answers["PUT " + metadata + "api/token"] = {200, {}, "metadata-token\n"};
  http.answers["GET " + metadata + "meta-data/iam/security-credentials/"] = {200, {}, "role\nother"};
  http.answers["GET " + metadata + "meta-data/iam/security-credentials/role"] = {200, {}, keys};
  EXPECT_EQ(Fetch().key_id, "M");
  EXPECT_EQ(HeaderIn(http.calls.at(0), "X-aws-ec2-metadata-token-ttl-seconds"), "21600");
  EXPECT_EQ(HeaderIn(http.calls.at(2), "X-aws-ec2-metadata-token"), "metadata-token");
  EXPECT_FALSE(http.calls.at(0).uses_proxy);
  http.answers["PUT " + metadata + "api/token"] = {403, {}, ""};
  EXPECT_EQ(Fetch().key_id, "M") << "version 1";
  EXPECT_EQ(HeaderIn(http.calls.back(), "X-aws-ec2-metadata-token"), "");
  http.answers["PUT " + metadata + "api/token"] = {400, {}, ""};
  EXPECT_THAT(FetchError(), HasSubstr("refuses to give a token"));
}

TEST_F(FetchTest, NoCredentialsAtAll) {
  EXPECT_THAT(
      FetchError(),
      AllOf(HasSubstr("there are no AWS credentials: not in the environment, not in the shared files"),
            HasSubstr("http://169.254.169.254 gives none: nobody answers")));
  http.answers["GET " + metadata + "meta-data/iam/security-credentials/"] = {404, {}, ""};
  EXPECT_THAT(FetchError(), HasSubstr("status 404"));
  http.answers["GET " + metadata + "meta-data/iam/security-credentials/"] = {200, {}, "\n"};
  EXPECT_THAT(FetchError(), HasSubstr("the instance has no role"));
}

// AWS-68
TEST_F(FetchTest, AContainerIsTriedThreeTimes) {
  variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://127.0.0.1:9/creds?secret=1";
  variables["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "auth";
  EXPECT_THAT(FetchError(),
              HasSubstr("credentials at http://127.0.0.1:9/creds could not be read: nobody answers"));
  EXPECT_EQ(http.calls.size(), 3u);
  http.answers["GET http://127.0.0.1:9/creds?secret=1"] = {200, {}, keys};
  EXPECT_EQ(Fetch().key_id, "M");
  EXPECT_EQ(HeaderIn(http.calls.back(), "Authorization"), "auth");
  Write("auth", "from-file\n");
  variables["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = folder + "/auth";
  Fetch();
  EXPECT_EQ(HeaderIn(http.calls.back(), "Authorization"), "from-file");
}

// AWS-71
TEST(ServerClockTest, ItFollowsAwsWhenSignaturesAreRefused) {
  testing::VirtualTime time;
  ServerClock clock(time.loop(), log::Logger("test"), "AWS");
  auto refusal_at = [&time](Duration offset) {
    return net::HttpReply{401, {{"date", HttpDate(time.loop().Now() + offset)}}, ""};
  };
  log::Capture log;
  clock.CorrectAfter(refusal_at(std::chrono::seconds(30)), "DescribeInstances");
  EXPECT_EQ(log.Count("clock of this host"), 0);
  EXPECT_EQ(clock.Now(), time.loop().Now()) << "the signature was refused for another reason";
  clock.CorrectAfter(refusal_at(std::chrono::minutes(10)), "DescribeInstances", "r-1");
  EXPECT_EQ(
      log.Count(
          "behind that of AWS, which refused DescribeInstances for it; calls are signed with AWS's time now. "
          "Correct the clock (request id r-1)"),
      1);
  EXPECT_GE(clock.Now() - time.loop().Now(), std::chrono::minutes(9));
  clock.CorrectAfter({401, {{"date", "yesterday"}}, ""}, "DescribeInstances");
  EXPECT_GE(clock.Now() - time.loop().Now(), std::chrono::minutes(9));
  clock.CorrectAfter(refusal_at(Duration(0)), "DescribeInstances");
  EXPECT_EQ(clock.Now(), time.loop().Now());
}

}  // namespace

}  // namespace nodepool::drivers::aws
