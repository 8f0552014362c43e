#include "drivers/aws/credentials/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "async/testing/virtual_time.h"
#include "base/clock.h"
#include "base/log/logging.h"
#include "base/testing/test_environment.h"
#include "driver/cloud/api/api_error.h"
#include "drivers/aws/credentials/account.h"

namespace nodepool::drivers::aws {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Source = CredentialPlan::Source;

TEST(IniFileTest, SectionsSettingsAndBlocks) {
  IniFile file = ParseIni(
      "# comment\n[default]\nRegion = us-west-2 \n\n[profile  a b]\r\nkey=v=w\ns3 =\n  addressing_style = "
      "path\n"
      "\tmax = 3\n; comment\nnext = text\n  second line\n[default]\nmore = 1\n");
  EXPECT_EQ(IniText(file.at("default"), "region"), "us-west-2");
  EXPECT_EQ(IniText(file.at("default"), "more"), "1");
  EXPECT_EQ(IniText(file.at("profile a b"), "key"), "v=w");
  EXPECT_EQ(file.at("profile a b").at("s3").block.at("addressing_style"), "path");
  EXPECT_EQ(file.at("profile a b").at("s3").block.at("max"), "3");
  EXPECT_EQ(IniText(file.at("profile a b"), "next"), "text");
}

TEST(IniFileTest, WhatIsNoSuchFileIsRefusedWithoutQuotingIt) {
  for (const char* text : {"secret = 1", "[a]\nsecret", "[", "[]"}) {
    try {
      ParseIni(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), AllOf(HasSubstr("line "), Not(HasSubstr("secret"))));
    }
  }
}

class CredentialsTest : public ::testing::Test {
 protected:
  CredentialsTest() {
    variables = {{"HOME", folder},
                 {"AWS_CONFIG_FILE", folder + "/config"},
                 {"AWS_SHARED_CREDENTIALS_FILE", folder + "/credentials"}};
  }

  void Write(const std::string& name, const std::string& text) { std::ofstream(folder + "/" + name) << text; }

  CredentialPlan Plan(std::optional<std::string> named = std::nullopt) {
    Profiles profiles = ReadProfiles(variables);
    std::string profile = ChooseProfile(profiles, variables, named);
    return PlanCredentials(profiles, variables, profile, named.has_value());
  }
  std::string PlanError(std::optional<std::string> named = std::nullopt) {
    try {
      Plan(named);
    } catch (const Error& error) {
      EXPECT_EQ(error.verdict(), Verdict::kInvalid);
      return error.message();
    }
    return "no error";
  }
  Account AccountFor(std::optional<std::string> region = "us-west-2",
                     std::optional<std::string> profile = std::nullopt) {
    return ResolveAccount(ReadProfiles(variables), variables, region, profile);
  }

  testing::TemporaryFolder temporary_;
  std::string folder = temporary_.path();
  Variables variables;
};

// AWS-68
TEST_F(CredentialsTest, TheEnvironmentComesFirstUnlessAProfileIsConfigured) {
  Write("credentials",
        "[default]\naws_access_key_id = FILE\naws_secret_access_key = s\n"
        "[other]\naws_access_key_id = OTHER\naws_secret_access_key = s\n");
  EXPECT_EQ(Plan().keys.key_id, "FILE");
  variables["AWS_ACCESS_KEY_ID"] = "ENV";
  variables["AWS_SECRET_ACCESS_KEY"] = "secret";
  variables["AWS_SESSION_TOKEN"] = "token";
  CredentialPlan plan = Plan();
  EXPECT_EQ(plan.source, Source::kKeys);
  EXPECT_EQ(plan.keys.key_id, "ENV");
  EXPECT_EQ(plan.keys.session_token, "token");
  EXPECT_EQ(Plan("other").keys.key_id, "OTHER");
  EXPECT_EQ(Plan("default").keys.key_id, "FILE");
  variables.erase("AWS_SECRET_ACCESS_KEY");
  EXPECT_THAT(PlanError(), HasSubstr("only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"));
}

TEST_F(CredentialsTest, TheProfileIsChosen) {
  Write("credentials", "[a]\naws_access_key_id = A\naws_secret_access_key = s\n");
  Write("config",
        "[profile \"b\"]\naws_access_key_id = B\naws_secret_access_key = s\n[profile c]\n"
        "credential_process = /bin/keys --for c\n");
  variables["AWS_DEFAULT_PROFILE"] = "a";
  EXPECT_EQ(Plan().keys.key_id, "A");
  variables["AWS_PROFILE"] = "b";
  EXPECT_EQ(Plan().keys.key_id, "B");
  EXPECT_EQ(Plan("c").command, "/bin/keys --for c");
  EXPECT_THAT(PlanError("nope"),
              AllOf(HasSubstr("there is no AWS profile nope"), HasSubstr(folder + "/config")));
  EXPECT_THAT(PlanError("default"), HasSubstr("there is no AWS profile default"));
}

// AWS-68
TEST_F(CredentialsTest, RolesAreAssumedOneAfterTheOther) {
  Write("config",
        "[profile a]\nrole_arn = arn:a\nsource_profile = b\nexternal_id = e\nduration_seconds = 1800\n"
        "[profile b]\nrole_arn = arn:b\nsource_profile = keys\nrole_session_name = s\n"
        "[profile loop]\nrole_arn = arn:l\nsource_profile = loop2\n"
        "[profile loop2]\nrole_arn = arn:l\nsource_profile = loop\n"
        "[profile mfa]\nrole_arn = arn:m\nmfa_serial = x\nsource_profile = keys\n"
        "[profile none]\nrole_arn = arn:n\n[profile metadata]\nrole_arn = arn:n\n"
        "credential_source = Ec2InstanceMetadata\n[profile empty]\nregion = x\n"
        "[profile from-empty]\nrole_arn = arn:e\nsource_profile = empty\n"
        "[profile sso]\nsso_session = x\n");
  Write("credentials", "[keys]\naws_access_key_id = K\naws_secret_access_key = s\n");
  CredentialPlan plan = Plan("a");
  EXPECT_EQ(plan.keys.key_id, "K");
  ASSERT_EQ(plan.roles.size(), 2u);
  EXPECT_EQ(plan.roles[0].arn, "arn:b");
  EXPECT_EQ(plan.roles[0].session_name, "s");
  EXPECT_EQ(plan.roles[0].seconds, 3600);
  EXPECT_EQ(plan.roles[1].arn, "arn:a");
  EXPECT_EQ(plan.roles[1].external_id, "e");
  EXPECT_EQ(plan.roles[1].seconds, 1800);
  EXPECT_EQ(Plan("metadata").source, Source::kInstanceMetadata);
  EXPECT_EQ(Plan("metadata").roles.size(), 1u);
  EXPECT_THAT(PlanError("loop"), HasSubstr("its own source_profile"));
  EXPECT_THAT(PlanError("mfa"), HasSubstr("mfa_serial"));
  EXPECT_THAT(PlanError("none"), HasSubstr("needs source_profile, or credential_source"));
  EXPECT_THAT(PlanError("from-empty"),
              HasSubstr("source_profile empty of profile from-empty has no credentials"));
  EXPECT_THAT(PlanError("sso"), HasSubstr("SSO, which is not supported"));
}

// AWS-68
TEST_F(CredentialsTest, WebIdentityContainerAndMetadata) {
  EXPECT_EQ(Plan().source, Source::kInstanceMetadata);
  EXPECT_EQ(Plan().url, "http://169.254.169.254");
  variables["AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"] = "IPv6";
  EXPECT_EQ(Plan().url, "http://[fd00:ec2::254]");
  variables["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = "/v2/x";
  EXPECT_EQ(Plan().source, Source::kContainer);
  EXPECT_EQ(Plan().url, "http://169.254.170.2/v2/x");
  variables.erase("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  for (const char* good : {"https://keys.example.org/x", "http://127.0.0.1:80/x", "http://169.254.170.23/x",
                           "http://[::1]:8080/x"}) {
    variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = good;
    EXPECT_EQ(Plan().url, good);
  }
  for (const char* bad : {"http://keys.example.org/x", "http://127.example.org/",
                          "http://127.0.0.1@evil.example/", "ftp://127.0.0.1/"}) {
    variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = bad;
    EXPECT_THAT(PlanError(), HasSubstr("AWS_CONTAINER_CREDENTIALS_FULL_URI")) << bad;
  }
  variables.erase("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  variables["AWS_ROLE_ARN"] = "arn:w";
  variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = "/token";
  EXPECT_EQ(Plan().source, Source::kWebIdentity);
  EXPECT_EQ(Plan().web_role.arn, "arn:w");
  variables.erase("AWS_ROLE_ARN");
  variables["AWS_EC2_METADATA_DISABLED"] = "true";
  EXPECT_THAT(PlanError(),
              AllOf(HasSubstr("there are no AWS credentials"), HasSubstr(folder + "/credentials")));
}

TEST_F(CredentialsTest, FilesThatCannotBeRead) {
  Write("credentials", "[default]\nnonsense\n");
  EXPECT_THAT(PlanError(), HasSubstr(folder + "/credentials: line 2"));
  std::filesystem::remove(folder + "/credentials");
  std::filesystem::create_directory(folder + "/credentials");
  EXPECT_EQ(Plan().source, Source::kInstanceMetadata) << "a folder holds nothing";
}

TEST_F(CredentialsTest, TheRegionHasSeveralPlaces) {
  auto region = [this](std::optional<std::string> configured) {
    return AccountFor(std::move(configured)).region;
  };
  EXPECT_THROW(region(std::nullopt), Error);
  Write("config", "[default]\nregion = from-profile\n");
  EXPECT_EQ(region(std::nullopt), "from-profile");
  variables["AWS_REGION"] = "second";
  EXPECT_EQ(region(std::nullopt), "second");
  variables["AWS_DEFAULT_REGION"] = "first";
  EXPECT_EQ(region(std::nullopt), "first");
  EXPECT_EQ(region("configured"), "configured");
  EXPECT_THROW(region("a.evil.example/"), Error);
}

// AWS-76
TEST_F(CredentialsTest, EndpointsHaveSeveralPlaces) {
  EXPECT_EQ(AccountFor().ec2_url, "https://ec2.us-west-2.amazonaws.com");
  EXPECT_EQ(AccountFor("cn-north-1").sts_url, "https://sts.cn-north-1.amazonaws.com.cn");
  Write("config",
        "[default]\nendpoint_url = http://profile/\nservices = mine\nmax_attempts = 3\nca_bundle = /ca\n"
        "[services mine]\nec2 =\n  endpoint_url = http://service\n");
  EXPECT_EQ(AccountFor().ec2_url, "http://service");
  EXPECT_EQ(AccountFor().sts_url, "http://profile");
  EXPECT_EQ(AccountFor().max_attempts, 3);
  EXPECT_EQ(AccountFor().tls->ca_path, "/ca");
  variables["AWS_ENDPOINT_URL"] = "http://all";
  EXPECT_EQ(AccountFor().ec2_url, "http://all");
  variables["AWS_ENDPOINT_URL_EC2"] = "http://ec2";
  EXPECT_EQ(AccountFor().ec2_url, "http://ec2");
  EXPECT_EQ(AccountFor().sts_url, "http://all");
  variables["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] = "true";
  EXPECT_EQ(AccountFor().ec2_url, "https://ec2.us-west-2.amazonaws.com");
  variables.erase("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
  variables["AWS_ENDPOINT_URL_EC2"] = "file:///x";
  EXPECT_THROW(AccountFor(), Error);
}

// AWS-76
TEST_F(CredentialsTest, BucketsAreInThePathWithAnAddressOfOnesOwn) {
  EXPECT_EQ(AccountFor().s3_url, "https://s3.us-west-2.amazonaws.com");
  EXPECT_EQ(AccountFor().ebs_url, "https://ebs.us-west-2.amazonaws.com");
  EXPECT_FALSE(AccountFor().puts_bucket_in_path);
  Write("config", "[default]\ns3 =\n  addressing_style = path\n");
  EXPECT_TRUE(AccountFor().puts_bucket_in_path);
  Write("config", "[default]\n");
  variables["AWS_ENDPOINT_URL_S3"] = "http://store";
  EXPECT_EQ(AccountFor().s3_url, "http://store");
  EXPECT_TRUE(AccountFor().puts_bucket_in_path);
  Write("config", "[default]\ns3 =\n  addressing_style = virtual\n");
  EXPECT_FALSE(AccountFor().puts_bucket_in_path);
}

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

TEST(ReadCredentialsTest, AnswersWithout) {
  auto error_of = [](const char* text) -> std::string {
    try {
      ReadCredentials(text, "the source");
    } catch (const Error& error) {
      return error.message();
    }
    return "no error";
  };
  EXPECT_THAT(error_of("no json"), HasSubstr("the source gives no credentials"));
  EXPECT_THAT(error_of("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(error_of(R"({"Code": "AssumeRoleUnauthorizedAccess", "Message": "no trust"})"),
              HasSubstr("AssumeRoleUnauthorizedAccess: no trust"));
  EXPECT_THAT(error_of(R"({"AccessKeyId": "K", "SecretAccessKey": 5})"), Not(HasSubstr("5,")));
  EXPECT_THAT(error_of(R"({"AccessKeyId": "K"})"), HasSubstr("contains no keys"));
  EXPECT_THAT(error_of(R"({"AccessKeyId": "K", "SecretAccessKey": "s", "Expiration": "soon"})"),
              HasSubstr("expiry is malformed"));
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
