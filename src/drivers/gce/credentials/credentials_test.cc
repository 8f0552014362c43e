// Where tokens come from (driver-gce.md 3).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <filesystem>
#include <fstream>

#include "async/testing/virtual_time.h"
#include "base/clock.h"
#include "base/log/logging.h"
#include "base/text.h"
#include "driver/cloud/api/scripted_client_for_test.h"
#include "drivers/gce/api/services.h"

namespace nodepool::drivers::gce {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string MakeKey() {
  EVP_PKEY* key = EVP_RSA_gen(2048);
  BIO* text = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(text, key, nullptr, nullptr, 0, nullptr, nullptr);
  char* bytes = nullptr;
  std::string pem(bytes, 0);
  long length = BIO_get_mem_data(text, &bytes);
  pem.assign(bytes, static_cast<std::size_t>(length));
  BIO_free(text);
  EVP_PKEY_free(key);
  return pem;
}

std::string FromUrlBase64(std::string text) {
  for (char& c : text) {
    if (c == '-') c = '+';
    if (c == '_') c = '/';
  }
  while (text.size() % 4 != 0) text += '=';
  return FromBase64(text).value_or("");
}

class GceCredentialsTest : public ::testing::Test {
 protected:
  GceCredentialsTest() : folder_(::testing::TempDir() + "gce-credentials-" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_ + "/gcloud");
  }
  ~GceCredentialsTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const boost::json::object& content) {
    return WriteText(name, boost::json::serialize(content));
  }
  std::string WriteText(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }
  static boost::json::object KeyFile() {
    static const std::string pem = MakeKey();
    return {{"type", "service_account"},
            {"client_email", "np@p"},
            {"private_key_id", "k1"},
            {"private_key", pem},
            {"token_uri", "http://o/token"}};
  }
  static boost::json::object UserFile() {
    return {{"type", "authorized_user"},
            {"client_id", "c"},
            {"client_secret", "s"},
            {"refresh_token", "r/1"},
            {"token_uri", "http://o/token"}};
  }
  Token Fetch(std::optional<std::string> file = std::nullopt, Variables variables = {}) {
    variables.emplace("HOME", "/nonexistent");
    Endpoints endpoints = EndpointsOf(variables);
    TokenFetcher fetcher({time.loop(), random_, pool_}, http, endpoints, std::move(file), variables,
                         log::Logger("test"));
    return time.Run(fetcher.Fetch(), std::chrono::hours(1));
  }
  std::string Fails(std::optional<std::string> file, Variables variables = {}) {
    try {
      Fetch(std::move(file), std::move(variables));
    } catch (const Error& error) {
      EXPECT_EQ(error.verdict(), Verdict::kRetry) << "somebody may correct it";
      return error.message();
    }
    return "no error";
  }
  net::HttpReply Answer(const net::HttpCall& call) {
    for (const auto& [url, reply] : answers) {
      if (call.url.starts_with(url)) return reply;
    }
    return {200, {}, R"({"access_token": "t", "expires_in": 3600})"};
  }

  testing::VirtualTime time;
  driver::cloud::api::ScriptedClient http{time.loop(),
                                          [this](const net::HttpCall& call) { return Answer(call); }};
  std::map<std::string, net::HttpReply> answers;
  std::string folder_;

 private:
  SeededRandom random_{1};
  BlockingPool pool_{0};
};

// GCE-51
TEST_F(GceCredentialsTest, AKeyOfAServiceAccountSignsAnAssertion) {
  Token token = Fetch(Write("key.json", KeyFile()));
  EXPECT_EQ(token.text, "t");
  EXPECT_EQ(token.expires, time.loop().Now() + std::chrono::hours(1));
  EXPECT_EQ(http.calls.front().url, "http://o/token");
  const std::string& body = http.calls.front().body;
  EXPECT_THAT(body,
              StartsWith("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion="));
  std::vector<std::string> parts = Split(body.substr(body.rfind('=') + 1), '.');
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(FromUrlBase64(parts[0]), R"({"alg":"RS256","typ":"JWT","kid":"k1"})");
  boost::json::value claims = boost::json::parse(FromUrlBase64(parts[1]));
  EXPECT_EQ(claims.at("iss"), "np@p");
  EXPECT_EQ(claims.at("aud"), "http://o/token");
  EXPECT_EQ(claims.at("exp").as_int64() - claims.at("iat").as_int64(), 3600);
  EXPECT_EQ(FromUrlBase64(parts[2]).size(), 256u);
}

// GCE-51
TEST_F(GceCredentialsTest, TheOrderOfSources) {
  std::string key = Write("key.json", KeyFile());
  std::string user = Write("user.json", UserFile());
  Write("gcloud/application_default_credentials.json", UserFile());
  auto body_with = [&](std::optional<std::string> file, Variables variables) {
    http.calls.clear();
    Fetch(std::move(file), std::move(variables));
    return http.calls.front().url + " " + http.calls.front().body;
  };
  EXPECT_THAT(body_with(key, {{"GOOGLE_APPLICATION_CREDENTIALS", user}}), HasSubstr("assertion="));
  EXPECT_EQ(body_with(std::nullopt, {{"GOOGLE_APPLICATION_CREDENTIALS", user}, {"CLOUDSDK_CONFIG", "/x"}}),
            "http://o/token grant_type=refresh_token&client_id=c&client_secret=s&refresh_token=r%2F1");
  EXPECT_THAT(body_with(std::nullopt, {{"CLOUDSDK_CONFIG", folder_ + "/gcloud"}}),
              HasSubstr("refresh_token"));
  EXPECT_EQ(body_with(std::nullopt, {{"GCE_METADATA_HOST", "here:1"}}),
            "http://here:1/computeMetadata/v1/instance/service-accounts/default/token ");
  EXPECT_EQ(driver::cloud::api::HeaderOf(http.calls.front(), "Metadata-Flavor"), "Google");
  EXPECT_FALSE(http.calls.front().uses_proxy);
}

// GCE-51
TEST_F(GceCredentialsTest, WorkloadIdentity) {
  std::string subject = WriteText("subject", "subject-token\n");
  boost::json::object file{{"type", "external_account"},
                           {"audience", "//iam/pool"},
                           {"subject_token_type", "urn:jwt"},
                           {"token_url", "http://sts/v1/token"},
                           {"credential_source", boost::json::object{{"file", subject}}}};
  EXPECT_EQ(Fetch(Write("a.json", file)).text, "t");
  EXPECT_THAT(http.calls.front().body, HasSubstr("subject_token=subject-token&"));
  file["service_account_impersonation_url"] = "http://iam/account:generateAccessToken";
  boost::json::object format{{"type", "json"}, {"subject_token_field_name", "value"}};
  file["credential_source"] = boost::json::object{
      {"url", "http://idp/"}, {"headers", boost::json::object{{"X-A", "b"}}}, {"format", format}};
  answers["http://idp/"] = {200, {}, R"({"value": "from-url"})"};
  answers["http://iam/"] = {
      200, {}, R"({"accessToken": "of-account", "expireTime": "2030-01-01T00:00:00Z"})"};
  http.calls.clear();
  EXPECT_EQ(Fetch(Write("b.json", file)).text, "of-account");
  ASSERT_EQ(http.calls.size(), 3u);
  EXPECT_EQ(driver::cloud::api::HeaderOf(http.calls[0], "X-A"), "b");
  EXPECT_THAT(http.calls[1].body, HasSubstr("subject_token=from-url&"));
  EXPECT_EQ(driver::cloud::api::HeaderOf(http.calls[2], "Authorization"), "Bearer t");
  file["credential_source"] = boost::json::object{{"executable", boost::json::object{}}};
  EXPECT_THAT(Fails(Write("c.json", file)),
              HasSubstr("c.json: its credential_source is neither file nor url"));
}

// GCE-51, GCE-53
TEST_F(GceCredentialsTest, AFileThatIsNamedIsNeverPassedOver) {
  EXPECT_THAT(Fails("/no/such/file"), HasSubstr("/no/such/file cannot be read"));
  EXPECT_THAT(Fails(WriteText("x.json", "{")), HasSubstr("x.json: it is no JSON object"));
  EXPECT_THAT(Fails(WriteText("y.json", R"({"type": "gdch"})")), HasSubstr("its type is gdch"));
  boost::json::object key = KeyFile();
  key["private_key"] = "-----BEGIN secret";
  std::string message = Fails(Write("z.json", key));
  EXPECT_THAT(message, HasSubstr("the private_key of the credentials file: expected a private RSA key"));
  EXPECT_THAT(message, Not(HasSubstr("BEGIN secret")));
  EXPECT_TRUE(http.calls.empty());
}

// GCE-53
TEST_F(GceCredentialsTest, RefusalsSayWhatToDo) {
  answers["http://o/"] = {
      400, {}, R"({"error": "invalid_grant", "error_description": "Invalid JWT Signature."})"};
  EXPECT_THAT(Fails(Write("key.json", KeyFile())),
              HasSubstr("invalid_grant: Invalid JWT Signature; check the credentials of this provider"));
}

// GCE-29
TEST_F(GceCredentialsTest, PassingFaultsOfTheTokenServiceAreRepeated) {
  int faults = 2;
  http.answer = [&](const net::HttpCall&) -> net::HttpReply {
    if (faults-- > 0) return {503, {}, "down"};
    return {200, {}, R"({"access_token": "t", "expires_in": 3600})"};
  };
  EXPECT_EQ(Fetch(Write("key.json", KeyFile())).text, "t");
}

// GCE-54
TEST_F(GceCredentialsTest, AClockThatIsWrong) {
  WallTime google = time.loop().Now() + std::chrono::minutes(10);
  std::vector<std::int64_t> issued;
  http.answer = [&](const net::HttpCall& call) -> net::HttpReply {
    std::string claims = FromUrlBase64(Split(call.body, '.').at(1));
    issued.push_back(boost::json::parse(claims).at("iat").as_int64());
    if (issued.size() == 1) {
      return {
          400,
          {{"date", HttpDate(google)}},
          R"({"error": "invalid_grant", "error_description": "Token must be in a reasonable timeframe"})"};
    }
    return {200, {}, R"({"access_token": "t", "expires_in": 3600})"};
  };
  log::Capture log;
  EXPECT_EQ(Fetch(Write("key.json", KeyFile())).text, "t");
  ASSERT_EQ(issued.size(), 2u);
  EXPECT_GE(issued[1] - issued[0], 590);
  EXPECT_EQ(log.Count("behind that of Google"), 1);
}

// GCE-52
TEST_F(GceCredentialsTest, TokensOfHostileServices) {
  for (const char* body :
       {"", "{}", "[]", R"({"access_token": 5})", R"({"access_token": "a\nb"})", "<html>"}) {
    http.answer = [body](const net::HttpCall&) -> net::HttpReply { return {200, {}, body}; };
    Fails(Write("key.json", KeyFile()));
  }
  http.answer = [](const net::HttpCall&) -> net::HttpReply {
    return {200, {}, R"({"access_token": "t", "expires_in": 1e300})"};
  };
  WallTime expires = Fetch(Write("key.json", KeyFile())).expires;
  EXPECT_LE(expires, time.loop().Now() + std::chrono::hours(24));
}

}  // namespace
}  // namespace nodepool::drivers::gce
