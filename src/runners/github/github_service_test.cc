#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "async/testing/virtual_time.h"
#include "base/crypto.h"
#include "runners/github/actions_service.h"
#include "runners/github/calls.h"
#include "runners/github/scripted_github_for_test.h"

namespace nodepool::runners::github {

// The service's client against answers of GitHub, in virtual time.

namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kRegistration = "POST /orgs/octo/actions/runners/registration-token";
constexpr const char* kRegister = "POST /actions/runner-registration";
constexpr const char* kSets = "GET /t/_apis/runtime/runnerscalesets";

class GithubServiceTest : public ::testing::Test {
 protected:
  GithubServiceTest() {
    http_.Answer(kRegistration, 201, R"({"token": "registration", "expires_at": "x"})");
    Admin(hours(1));
  }
  void Admin(Duration lasts) {
    double end = ToSeconds(time_.loop().Now() + lasts);
    std::string claims = "{\"exp\": " + std::to_string(static_cast<std::int64_t>(end)) + "}";
    http_.Answer(kRegister, 200,
                 R"({"url": "https://pipelines.example.org/t/", "token": "x.)" + Base64Url(claims) + ".y\"}");
  }
  ActionsService& service(config::RunnerCredentials credentials = {.token = "ghp_personal"}) {
    if (!service_) {
      config::RunnerService settings{.name = "octo", .url = "https://github.com/octo"};
      settings.credentials = std::move(credentials);
      service_.emplace(time_.loop(), random_, http_, metrics_, settings);
    }
    return *service_;
  }
  template <class T>
  T Run(Task<T> task) {
    return time_.Run(std::move(task), hours(3));
  }
  template <class T>
  std::string FailureOf(Task<T> task) {
    Outcome<T> outcome = Run(Attempt(std::move(task)));
    return outcome ? "none" : outcome.error().message();
  }
  MessageSession Session() {
    return {.set = 4,
            .id = "s",
            .queue_url = "https://queue.example.org/q?sessionId=s",
            .queue_token = "queue-1"};
  }

  nodepool::testing::VirtualTime time_;
  SeededRandom random_{1};
  metrics::Metrics metrics_;
  ScriptedGithub http_{time_.loop()};
  std::optional<ActionsService> service_;
};

// RUN-7, RUN-8
TEST_F(GithubServiceTest, TheAdminConnection) {
  http_.Answer(kSets, 200, R"({"count": 1, "value": [{"id": 4, "name": "small", "labels": []}]})");
  std::optional<ScaleSet> set = Run(service().FindSet("small", 1));
  ASSERT_TRUE(set);
  EXPECT_EQ(set->id, 4);
  ASSERT_EQ(http_.calls.size(), 3);
  EXPECT_EQ(HeaderIn(http_.calls[0], "Authorization"), "Bearer ghp_personal");
  EXPECT_EQ(HeaderIn(http_.calls[1], "Authorization"), "RemoteAuth registration");
  EXPECT_THAT(http_.calls[1].body, HasSubstr("https://github.com/octo"));
  EXPECT_EQ(http_.calls[2].url,
            "https://pipelines.example.org/t/_apis/runtime/runnerscalesets?runnerGroupId=1&name=small&"
            "api-version=6.0-preview");
  EXPECT_THAT(HeaderIn(http_.calls[2], "User-Agent"), HasSubstr("\"system\":\"nodepool\""));
}

// RUN-9
TEST_F(GithubServiceTest, TheAdminConnectionIsRenewedAMinuteBeforeItsEnd) {
  http_.Answer(kSets, 200, R"({"value": []})");
  Run(service().FindSet("small", 1));
  time_.Advance(minutes(58));
  Run(service().FindSet("small", 1));
  EXPECT_EQ(http_.Count("runner-registration"), 1);
  time_.Advance(minutes(2));
  Run(service().FindSet("small", 1));
  EXPECT_EQ(http_.Count("runner-registration"), 2);
}

// RUN-9
TEST_F(GithubServiceTest, A401OfAnyCallRenewsTheConnectionOnce) {
  http_.Answer(kSets, 401, "");
  http_.Answer(kSets, 200, R"({"value": []})");
  EXPECT_FALSE(Run(service().FindSet("small", 1)));
  EXPECT_EQ(http_.Count("runner-registration"), 2);
  http_.answers[kSets] = {{401, {}, ""}};
  EXPECT_THAT(FailureOf(service().FindSet("small", 1)), HasSubstr("status 401"));
  EXPECT_EQ(http_.Count("runner-registration"), 3);
}

// RUN-10
TEST_F(GithubServiceTest, ARegistrationThatIsNotKnownYetIsTriedAgain) {
  http_.Answer(kSets, 200, R"({"value": []})");
  http_.answers[kRegister].push_front({403, {}, ""});
  http_.answers[kRegister].push_front({401, {}, ""});
  EXPECT_FALSE(Run(service().FindSet("small", 1)));
  EXPECT_EQ(http_.Count("runner-registration"), 3);
}

// RUN-10
TEST_F(GithubServiceTest, OtherRefusalsOfTheRegistrationAreFaults) {
  http_.answers[kRegister] = {{422, {}, R"({"message": "Invalid request."})"}};
  EXPECT_THAT(FailureOf(service().FindSet("small", 1)), HasSubstr("status 422: Invalid request."));
  EXPECT_EQ(http_.Count("runner-registration"), 1);
  http_.answers[kRegister] = {{401, {}, ""}};
  EXPECT_THAT(FailureOf(service().FindSet("small", 1)), HasSubstr("status 401"));
  EXPECT_EQ(http_.Count("runner-registration"), 5);
}

// RUN-12
TEST_F(GithubServiceTest, RunnerGroups) {
  EXPECT_EQ(Run(service().GroupId("")), 1);
  EXPECT_TRUE(http_.calls.empty());
  http_.Answer("GET /t/_apis/runtime/runnergroups/", 200,
               R"({"count": 1, "value": [{"id": 3, "name": "nodepool"}]})");
  EXPECT_EQ(Run(service().GroupId("nodepool")), 3);
  EXPECT_THAT(FailureOf(service().GroupId("oth\x1b"
                                          "er")),
              HasSubstr("no runner group oth\\x1ber"));
}

// RUN-24
TEST_F(GithubServiceTest, AQueueTokenThatHasEndedIsRenewed) {
  http_.Answer("GET /q", 401, "");
  http_.Answer("GET /q", 202, "");
  http_.Answer("PATCH /t/_apis/runtime/runnerscalesets/4/sessions/s", 200,
               R"({"sessionId": "s", "messageQueueUrl": "https://queue.example.org/q?sessionId=s",
                   "messageQueueAccessToken": "queue-2"})");
  MessageSession session = Session();
  EXPECT_FALSE(Run(service().NextBatch(session, 0, 5)));
  EXPECT_EQ(session.queue_token, "queue-2");
  EXPECT_EQ(HeaderIn(http_.calls.back(), "Authorization"), "Bearer queue-2");
  EXPECT_EQ(HeaderIn(http_.calls.back(), "X-ScaleSetMaxCapacity"), "5");
}

// RUN-25
TEST_F(GithubServiceTest, AnswersOfAPollWithoutMeaningAreErrors) {
  http_.Answer("GET /q", 200, "");
  MessageSession session = Session();
  EXPECT_THAT(FailureOf(service().NextBatch(session, 0, 5)), HasSubstr("is not JSON"));
  http_.answers["GET /q"] = {{200, {}, "{\"messageId\": 7, \"body\":"}};
  EXPECT_THAT(FailureOf(service().NextBatch(session, 0, 5)), HasSubstr("is not JSON"));
}

TEST_F(GithubServiceTest, MessagesAreAskedForAndAcknowledged) {
  http_.Answer("GET /q", 202, "");
  http_.Answer("DELETE /q/9", 204, "");
  MessageSession session = Session();
  Run(service().NextBatch(session, 8, 5));
  EXPECT_EQ(http_.calls.back().url, "https://queue.example.org/q?sessionId=s&lastMessageId=8");
  Run(service().Acknowledge(session, 9));
  EXPECT_EQ(http_.calls.back().url, "https://queue.example.org/q/9?sessionId=s");
}

TEST_F(GithubServiceTest, RegistrationsAndWhatIsWrongWithThem) {
  http_.Answer("POST /t/_apis/runtime/runnerscalesets/4/generatejitconfig", 200,
               R"({"runner": {"id": 8, "name": "np-1"}, "encodedJITConfig": "c2VjcmV0"})");
  Registration made = Run(service().Register({.set = 4, .name = "np-1"}));
  EXPECT_EQ(made.id, 8);
  EXPECT_EQ(made.configuration, "c2VjcmV0");
  EXPECT_TRUE(http_.calls.back().is_sent_once());
  for (const char* body : {R"({"runner": {"id": 8}})", R"({"runner": {"id": 8}, "encodedJITConfig": "a\nb"})",
                           R"({"encodedJITConfig": "x"})", "[]"}) {
    http_.answers["POST /t/_apis/runtime/runnerscalesets/4/generatejitconfig"] = {{200, {}, body}};
    EXPECT_THAT(FailureOf(service().Register({.set = 4, .name = "np-1"})), HasSubstr("no runner"));
  }
}

// RUN-95
TEST_F(GithubServiceTest, PublicRepositories) {
  http_.Answer("GET /repos/octo/open", 200, R"({"private": false})");
  http_.Answer("GET /repos/octo/app", 200, R"({"private": true})");
  http_.Answer("GET /repos/octo/odd", 200, "{}");
  EXPECT_TRUE(Run(service().IsPublic("octo/open")));
  EXPECT_FALSE(Run(service().IsPublic("octo/app")));
  EXPECT_FALSE(Run(service().IsPublic("octo/odd")));
  EXPECT_FALSE(Run(service().IsPublic("octo/hidden")));
  EXPECT_TRUE(Run(service().IsPublic("octo/open")));
  EXPECT_EQ(http_.Count("/repos/octo/open"), 1);
  time_.Advance(minutes(61));
  EXPECT_TRUE(Run(service().IsPublic("octo/open")));
  EXPECT_EQ(http_.Count("/repos/octo/open"), 2);
}

// RUN-35
TEST_F(GithubServiceTest, ARunnerWithAJobIsBusy) {
  std::string path = "DELETE /t/_apis/distributedtask/pools/0/agents/8";
  http_.Answer(path, 400,
               R"({"typeName": "GitHub.X.JobStillRunningException, GitHub.X", "message": "runs"})");
  EXPECT_EQ(Run(service().RemoveRunner(8)), Removal::kBusy);
  http_.answers[path] = {{404, {}, ""}};
  EXPECT_EQ(Run(service().RemoveRunner(8)), Removal::kGone);
  http_.answers[path] = {{204, {}, ""}};
  EXPECT_EQ(Run(service().RemoveRunner(8)), Removal::kRemoved);
  http_.answers[path] = {{400, {}, R"({"message": "other"})"}};
  EXPECT_THAT(FailureOf(service().RemoveRunner(8)), HasSubstr("other"));
}

// RUN-61, RUN-62: calls of that kind wait, and others do not.
TEST_F(GithubServiceTest, CallsOfAKindPauseForAsLongAsIsAsked) {
  std::string agent = "GET /t/_apis/distributedtask/pools/0/agents/8";
  http_.answers[agent] = {{403, {{"retry-after", "60"}}, "secondary rate limit"}, {200, {}, "{}"}};
  http_.Answer(kSets, 200, R"({"value": []})");
  EXPECT_THAT(FailureOf(service().HasRunner(8)), HasSubstr("status 403"));
  SteadyTime begun = time_.loop().SteadyNow();
  Run(service().FindSet("small", 1));
  EXPECT_LT(time_.loop().SteadyNow() - begun, seconds(1));
  EXPECT_TRUE(Run(service().HasRunner(8)));
  EXPECT_GE(time_.loop().SteadyNow() - begun, seconds(60));
  EXPECT_LE(time_.loop().SteadyNow() - begun, seconds(67));
}

class AppTest : public GithubServiceTest {
 protected:
  static std::string NewKey();
};

std::string AppTest::NewKey() {
  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_RSA_gen(2048), &EVP_PKEY_free);
  std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), &BIO_free);
  PEM_write_bio_PrivateKey(out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  char* data = nullptr;
  auto size = static_cast<std::size_t>(BIO_get_mem_data(out.get(), &data));
  return {data, size};
}

// RUN-5, RUN-6
TEST_F(AppTest, TheInstallationsTokenIsKept) {
  std::string app = "POST /app/installations/8001/access_tokens";
  http_.Answer(app, 201, R"({"token": "ghs_1", "expires_at": "x"})");
  http_.Answer(kSets, 200, R"({"value": []})");
  service({.app_client_id = "Iv23", .app_installation_id = "8001", .app_private_key = NewKey()});
  Admin(hours(1));
  Run(service_->FindSet("small", 1));
  EXPECT_THAT(HeaderIn(http_.calls[0], "Authorization"), HasSubstr("Bearer eyJ"));
  EXPECT_EQ(HeaderIn(http_.calls[1], "Authorization"), "Bearer ghs_1");
  http_.answers[kRegistration] = {{401, {}, ""}, {201, {}, R"({"token": "registration"})"}};
  http_.answers[app] = {{201, {}, R"({"token": "ghs_2"})"}};
  time_.Advance(minutes(59));
  Run(service_->FindSet("small", 1));
  EXPECT_EQ(HeaderIn(http_.calls[http_.calls.size() - 3], "Authorization"), "Bearer ghs_2");
}

// RUN-5
TEST_F(AppTest, Claims) {
  boost::json::object claims = boost::json::parse(AppClaims("Iv23", FromSeconds(1'700'000'000))).as_object();
  EXPECT_EQ(claims["iss"], "Iv23");
  EXPECT_EQ(claims["iat"], 1'699'999'940);
  EXPECT_EQ(claims["exp"], 1'700'000'480);
}

// RUN-50
TEST_F(AppTest, NoSecretIsInAnError) {
  service(
      {.app_client_id = "Iv23", .app_installation_id = "8001", .app_private_key = "/nonexistent/key.pem"});
  EXPECT_THAT(FailureOf(service_->FindSet("small", 1)), HasSubstr("/nonexistent/key.pem cannot be read"));
  service_.reset();
  service({.app_client_id = "Iv23", .app_installation_id = "8001", .app_private_key = "-----BEGIN secret"});
  EXPECT_THAT(FailureOf(service_->FindSet("small", 1)), Not(HasSubstr("secret")));
  service_.reset();
  service({});
  EXPECT_THAT(FailureOf(service_->FindSet("small", 1)), HasSubstr("secure file"));
}

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const WallTime kFaultNow = FromSeconds(1'700'000'000);

net::HttpReply Reply(int status, std::string body, net::HttpHeaders headers = {}) {
  return {status, std::move(headers), std::move(body)};
}

// RUN-11
TEST(ServiceFaultTest, RefusalsOfAllKindsAreRead) {
  std::string exception =
      "GitHub.Actions.Runtime.WebApi.JobStillRunningException, GitHub.Actions.Runtime.WebApi";
  ServiceError error = ErrorOf("DELETE agent", Reply(400, "\xef\xbb\xbf{\"typeName\": \"" + exception +
                                                              "\", \"message\": \"is running\"}"));
  EXPECT_TRUE(error.Is("JobStillRunningException"));
  EXPECT_FALSE(error.Is("StillRunningException"));
  EXPECT_FALSE(error.Is("JobStill"));
  EXPECT_EQ(error.message(), "DELETE agent: status 400: is running");
  EXPECT_EQ(ErrorOf("x", Reply(502, "<html>bad</html>")).message(),
            "x: status 502: an answer in HTML, perhaps of a proxy");
  EXPECT_EQ(ErrorOf("x", Reply(500, "plain\x1b[2J\n")).message(), "x: status 500: plain\\x1b[2J");
  EXPECT_EQ(ErrorOf("x", Reply(404, "")).message(), "x: status 404");
  EXPECT_LT(ErrorOf("x", Reply(500, std::string(100'000, 'a'))).message().size(), 400);
}

// RUN-11
TEST(ServiceFaultTest, IdsOfTheRequestAreNamed) {
  ServiceError error = ErrorOf("x", Reply(500, "", {{"activityid", "a-1"}, {"x-github-request-id", "b\n2"}}));
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("activityid a-1"), HasSubstr("b\\x0a2"), Not(HasSubstr("\n"))));
}

TEST(ServiceFaultTest, Verdicts) {
  EXPECT_EQ(ErrorOf("x", Reply(404, "")).verdict(), Verdict::kNotFound);
  EXPECT_EQ(ErrorOf("x", Reply(409, "")).verdict(), Verdict::kConflict);
  EXPECT_EQ(ErrorOf("x", Reply(429, "")).verdict(), Verdict::kRateLimited);
  EXPECT_EQ(ErrorOf("x", Reply(503, "")).verdict(), Verdict::kRetry);
  EXPECT_EQ(ErrorOf("x", Reply(401, "")).verdict(), Verdict::kRetry);
  EXPECT_EQ(ErrorOf("x", Reply(422, "")).verdict(), Verdict::kInvalid);
}

// RUN-61, RUN-62
TEST(ServiceFaultTest, PausesThatAreAskedFor) {
  EXPECT_EQ(AskedPause(Reply(403, "", {{"retry-after", "30"}}), kFaultNow), seconds(30));
  EXPECT_EQ(AskedPause(Reply(429, ""), kFaultNow), seconds(60));
  EXPECT_EQ(AskedPause(Reply(403, "", {{"x-ratelimit-remaining", "0"}, {"x-ratelimit-reset", "1700000100"}}),
                       kFaultNow),
            seconds(101));
  EXPECT_EQ(AskedPause(Reply(403, ""), kFaultNow), std::nullopt);
  EXPECT_EQ(AskedPause(Reply(500, "", {{"retry-after", "30"}}), kFaultNow), std::nullopt);
}

// RUN-62: nothing from outside stops us for ever.
TEST(ServiceFaultTest, PausesAreBounded) {
  EXPECT_EQ(AskedPause(Reply(429, "", {{"retry-after", "999999999"}}), kFaultNow), std::chrono::hours(2));
  EXPECT_EQ(AskedPause(Reply(429, "", {{"retry-after", "-5"}}), kFaultNow), seconds(1));
  EXPECT_EQ(AskedPause(Reply(429, "", {{"retry-after", "soon"}}), kFaultNow), seconds(60));
  EXPECT_EQ(
      AskedPause(Reply(403, "", {{"x-ratelimit-remaining", "0"}, {"x-ratelimit-reset", "x"}}), kFaultNow),
      seconds(60));
}

TEST(ServiceFaultTest, WhatIsNoJsonIsAnError) {
  EXPECT_THROW(ReadJson("x", Reply(200, "<html>")), Error);
  EXPECT_TRUE(ReadJson("x", Reply(200, "\xef\xbb\xbf{}")).is_object());
}

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
