#include "drivers/aws/credentials/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "drivers/aws/credentials/credentials_fixture_for_test.h"

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

}  // namespace

}  // namespace nodepool::drivers::aws
