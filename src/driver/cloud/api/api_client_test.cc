#include "driver/cloud/api/api_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/loop.h"
#include "async/task_group.h"
#include "async/testing/virtual_time.h"
#include "driver/cloud/api/scripted_client_for_test.h"

namespace nodepool::driver::cloud::api {

namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

// Signs with a number that is incremented when a signature is refused.
class NumberSigner : public Signer {
 public:
  Task<Renew> Sign(net::HttpCall& call) override {
    call.headers.emplace_back("Signature", std::to_string(number));
    co_return [this](const net::HttpReply&) { ++number; };
  }
  int number = 1;
};

class ApiClientTest : public ::testing::Test, protected ProviderObserver {
 protected:
  ApiClient& client() {
    if (!client_) {
      options.cloud = "vendor";
      options.metrics = {this, ProviderName("cloud"), "toy"};
      client_.emplace(time.loop(), pool, random, http, signer, log::Logger("test"), options);
    }
    return *client_;
  }
  static ApiRequest Request(std::string method = "GET", std::string service = "compute") {
    ApiRequest request;
    request.service = std::move(service);
    request.name = "things";
    request.text = method + " things";
    request.call.method = std::move(method);
    request.call.url = "http://cloud/things";
    return request;
  }
  ApiReply Call(ApiRequest request) { return time.Run(client().CallJson(std::move(request)), 10h); }
  Failure FailureOf(ApiRequest request) {
    Task<Outcome<ApiReply>> call = Attempt(client().CallJson(std::move(request)));
    Outcome<ApiReply> outcome = time.Run(std::move(call), 10h);
    return outcome ? Failure(Error(Verdict::kFail, "there was an answer")) : outcome.error();
  }
  net::HttpReply NextAnswer() {
    if (answers.empty()) return {200, {}, R"({"answer": 42})"};
    net::HttpReply answer = answers.front();
    answers.erase(answers.begin());
    if (answer.status == 0) throw net::HttpError(Verdict::kRetry, "the connection broke", true);
    return answer;
  }
  void ApiCallEnded(const ApiCall& call) override { ended.push_back(call); }
  void ApiRateChanged(const ApiRate& rate) override { rates.push_back(rate); }

  testing::VirtualTime time;
  BlockingPool pool{0};
  SeededRandom random{1};
  std::vector<net::HttpReply> answers;  // status 0: none
  ScriptedClient http{time.loop(), [this](const net::HttpCall&) { return NextAnswer(); }};
  NumberSigner signer;
  ApiClient::Options options;
  std::vector<ApiCall> ended;
  std::vector<ApiRate> rates;

 private:
  std::optional<ApiClient> client_;
};

TEST_F(ApiClientTest, AnswersAreSignedParsedAndCounted) {
  ApiReply reply = Call(Request());
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body.at("answer"), 42);
  EXPECT_EQ(HeaderOf(http.calls.at(0), "Signature"), "1");
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].provider, ProviderName("cloud"));
  EXPECT_EQ(ended[0].driver, "toy");
  EXPECT_EQ(ended[0].service, "compute");
  EXPECT_EQ(ended[0].name, "things");
  EXPECT_EQ(ended[0].status, 200);
  EXPECT_EQ(ended[0].duration, 10ms);
}

TEST_F(ApiClientTest, LargeAnswersAreParsedOffTheLoop) {
  answers.push_back({200, {}, "[" + std::string(100'000, ' ') + "1]"});
  Loop loop;
  BlockingPool pool(1);  // ends before the loop, which its thread reports to
  ScriptedClient client(loop, [this](const net::HttpCall&) { return NextAnswer(); });
  ApiClient real(loop, pool, random, client, signer, log::Logger("test"), options);
  EXPECT_EQ(RunToEnd(loop, real.CallJson(Request())).body.as_array().size(), 1u);
}

TEST_F(ApiClientTest, AnAnswerThatIsNotJsonIsAnError) {
  answers.push_back({200, {}, "<p>a login page</p>"});
  Failure failure = FailureOf(Request());
  EXPECT_EQ(failure.verdict(), Verdict::kRetry);
  EXPECT_THAT(failure.message(), HasSubstr("no JSON: a login page"));
  answers.push_back({204, {}, ""});
  EXPECT_TRUE(Call(Request()).body.is_null());
}

TEST_F(ApiClientTest, ErrorsNameTheRequestIdAndTheRemedy) {
  options.request_id = [](const net::HttpReply& reply) { return reply.Header("x-id"); };
  options.remedies = {
      .unknown_host = "check the name", .no_answer = "check the network", .odd_answer = "check the URL"};
  answers.push_back({403, {{"x-id", "r-1"}}, "no"});
  EXPECT_THAT(FailureOf(Request()).message(), EndsWith("403 no (request id r-1)"));
  answers.push_back({200, {{"x-id", "r-2"}}, "<p>a page</p>"});
  EXPECT_THAT(FailureOf(Request()).message(), EndsWith("no JSON: a page; check the URL (request id r-2)"));
  answers.insert(answers.end(), 2, {0, {}, ""});
  EXPECT_EQ(FailureOf(Request()).message(), "things: the connection broke; check the network");
  Failure unknown(std::make_exception_ptr(net::HttpError(Verdict::kRetry, "no such host", false, true)));
  EXPECT_THROW(ThrowWithoutAnswer("servers", {}, unknown), net::HttpError);
  try {
    ThrowWithoutAnswer("servers", options.remedies, unknown);
  } catch (const net::HttpError& error) {
    EXPECT_EQ(error.message(), "servers: no such host; check the name");
    EXPECT_TRUE(error.is_unknown_host());
  }
}

TEST_F(ApiClientTest, ARefusalIsReadOnce) {
  options.read_fault = [](int, std::string_view body) {
    return Fault{Verdict::kQuota, std::string(body), "LimitExceeded"};
  };
  answers.push_back({400, {}, "no room"});
  Failure failure = FailureOf(Request());
  EXPECT_EQ(failure.verdict(), Verdict::kQuota);
  EXPECT_EQ(failure.message(), "GET things: 400 no room");
  EXPECT_EQ(StatusOf(failure), 400);
  try {
    failure.Rethrow();
  } catch (const ApiError& error) {
    EXPECT_EQ(error.code(), "LimitExceeded");
  }
}

TEST_F(ApiClientTest, ARefusedSignatureIsRenewedOnce) {
  answers = {{401, {}, ""}};
  EXPECT_EQ(Call(Request()).status, 200);
  EXPECT_EQ(HeaderOf(http.calls.at(1), "Signature"), "2");
  answers = {{401, {}, ""}, {401, {}, ""}};
  EXPECT_EQ(StatusOf(FailureOf(Request())), 401);
  EXPECT_EQ(signer.number, 3);
}

TEST_F(ApiClientTest, OnlyCallsOfABusyServiceBackOff) {
  answers = {{429, {{"retry-after", "30"}}, ""}};
  TaskGroup tasks(time.loop(), log::Logger("test"));
  auto call = [](ApiClient& client, ApiRequest request) -> Task<> {
    co_await client.CallJson(std::move(request));
  };
  tasks.Spawn("first", call(client(), Request("POST")));
  time.Advance(1s);
  tasks.Spawn("second", call(client(), Request()));
  tasks.Spawn("other service", call(client(), Request("GET", "network")));
  time.Advance(1s);
  EXPECT_EQ(http.calls.size(), 2u);
  time.Advance(30s);
  EXPECT_EQ(http.calls.size(), 4u);
  time.Run(tasks.Stop());
}

TEST_F(ApiClientTest, AServiceThatStaysBusyFailsInTheEnd) {
  answers.assign(10, {429, {}, ""});
  ApiRequest request = Request();
  request.retries = 2;
  EXPECT_EQ(FailureOf(std::move(request)).verdict(), Verdict::kRateLimited);
  EXPECT_EQ(http.calls.size(), 3u);
}

// After a proxy's 503 or a broken connection it is unknown whether the call was carried out.
TEST_F(ApiClientTest, WhatMayHaveBeenDoneIsNotRepeated) {
  answers = {{503, {}, ""}};
  EXPECT_EQ(StatusOf(FailureOf(Request("POST"))), 503);
  answers = {{0, {}, ""}};
  EXPECT_EQ(StatusOf(FailureOf(Request("POST"))), 0);
  EXPECT_EQ(http.calls.back().may_be_repeated, false) << "not by the client's library, either";
  for (std::string method : {"GET", "DELETE"}) {
    answers = {{0, {}, ""}};
    EXPECT_EQ(Call(Request(method)).status, 200) << method;
    EXPECT_EQ(http.calls.back().may_be_repeated, true) << method;
  }
  ApiRequest query = Request("POST");
  query.only_reads = true;
  answers = {{0, {}, ""}};
  EXPECT_EQ(Call(std::move(query)).status, 200) << "an API whose queries are POSTs";
  answers = {{0, {}, ""}, {0, {}, ""}};
  EXPECT_EQ(FailureOf(Request()).verdict(), Verdict::kRetry) << "once only";
  EXPECT_EQ(ended.back().status, std::nullopt);
}

TEST_F(ApiClientTest, ChangesDoNotQueueBehindReads) {
  TaskGroup tasks(time.loop(), log::Logger("test"));
  auto call = [](ApiClient& client, ApiRequest request) -> Task<> {
    co_await client.CallJson(std::move(request));
  };
  http.latency = 1min;
  for (int i = 0; i < 30; ++i) tasks.Spawn("read", call(client(), Request()));
  time.Advance(1s);
  EXPECT_EQ(http.under_way, 10);
  tasks.Spawn("change", call(client(), Request("DELETE")));
  time.Advance(1s);
  EXPECT_EQ(http.under_way, 11);
  time.Run(tasks.Join());
  EXPECT_EQ(http.calls.size(), 31u);
}

TEST_F(ApiClientTest, ChangesKeepTheRate) {
  options.change_rate = RateLimiter::Settings{2s};
  http.latency = Duration::zero();
  Call(Request());
  SteadyTime before = time.loop().SteadyNow();
  for (int i = 0; i < 4; ++i) Call(Request("POST"));
  EXPECT_EQ(time.loop().SteadyNow() - before, 6s);
}

TEST_F(ApiClientTest, ReadsHaveARateOfTheirOwn) {
  options.change_rate = RateLimiter::Settings{2s};
  options.read_rate = RateLimiter::Settings{1s};
  http.latency = Duration::zero();
  SteadyTime before = time.loop().SteadyNow();
  for (int i = 0; i < 4; ++i) Call(Request());
  EXPECT_EQ(time.loop().SteadyNow() - before, 3s);
}

// A refusal that the API calls "too many" has done nothing, whatever its status.
TEST_F(ApiClientTest, TheReaderSaysWhatIsTooMuch) {
  options.read_fault = [](int, std::string_view body) {
    return Fault{body == "slower" ? Verdict::kRateLimited : Verdict::kInvalid, std::string(body), ""};
  };
  answers = {{503, {}, "slower"}, {400, {}, "slower"}};
  EXPECT_EQ(Call(Request("POST")).status, 200);
  EXPECT_EQ(http.calls.size(), 3u);
  answers = {{503, {}, "down"}};
  EXPECT_EQ(StatusOf(FailureOf(Request("POST"))), 503);
}

TEST_F(ApiClientTest, ARefusalThatSaysWhenToComeBackMeansLater) {
  net::HttpReply busy{413, {{"retry-after", "2"}}, R"({"overLimit": {"message": "rate-limited"}})"};
  answers = {busy, busy};
  SteadyTime before = time.loop().SteadyNow();
  EXPECT_EQ(Call(Request("POST")).status, 200);
  EXPECT_EQ(http.calls.size(), 3u);
  EXPECT_GE(time.loop().SteadyNow() - before, 4s);
  answers = {{413, {}, "too large"}};
  EXPECT_EQ(FailureOf(Request("POST")).verdict(), Verdict::kInvalid);
  answers = {{404, {{"retry-after", "2"}}, ""}};
  EXPECT_EQ(FailureOf(Request()).verdict(), Verdict::kNotFound) << "it answers the question";
}

TEST_F(ApiClientTest, AfterABackOffOneCallAtATimeIsSent) {
  options.change_rate = RateLimiter::Settings{1s};
  answers.assign(2, {429, {{"retry-after", "10"}}, ""});
  TaskGroup tasks(time.loop(), log::Logger("test"));
  auto call = [](ApiClient& client, ApiRequest request) -> Task<> {
    co_await client.CallJson(std::move(request));
  };
  for (int i = 0; i < 5; ++i) tasks.Spawn("change", call(client(), Request("POST")));
  time.Advance(10s);
  EXPECT_EQ(http.calls.size(), 1u);
  time.Advance(2s);
  EXPECT_EQ(http.calls.size(), 2u) << "the second refusal holds back the others";
  time.Run(tasks.Join());
  EXPECT_EQ(http.calls.size(), 7u);
}

TEST_F(ApiClientTest, TheRateGivesWayRecoversAndIsReported) {
  options.change_rate = RateLimiter::Settings{100ms};
  answers = {{429, {}, ""}};
  ApiRequest change = Request("PUT");
  change.budget = "changes";
  EXPECT_EQ(Call(change).status, 200);
  ASSERT_GE(rates.size(), 2u);
  EXPECT_EQ(rates[0].share, 0.5);
  EXPECT_EQ(rates[0].budget, "changes");
  EXPECT_EQ(rates[0].provider, ProviderName("cloud"));
  EXPECT_GT(rates.back().share, 0.5);
  time.Advance(1min);
  Call(change);
  EXPECT_EQ(rates.back().share, 1);
  std::size_t reported = rates.size();
  Call(change);
  EXPECT_EQ(rates.size(), reported) << "only changes are reported";
}

// RATE-3
TEST_F(ApiClientTest, AServiceThatAnswersMuchSlowerThanUsualIsCalledLess) {
  log::Capture log;
  for (int i = 0; i < 20; ++i) Call(Request());
  EXPECT_TRUE(rates.empty()) << "nothing fails";
  http.latency = 5s;
  for (int i = 0; i < 3; ++i) Call(Request());
  ASSERT_FALSE(rates.empty());
  EXPECT_EQ(rates.back().share, 0.5);
  EXPECT_EQ(rates.back().budget, "compute");
  EXPECT_EQ(log.Count("The compute service of cloud vendor answers much slower than usual (5.0 s to things)"),
            1);
}

// RATE-2
TEST_F(ApiClientTest, CallsWithoutAnAnswerLowerTheRate) {
  options.change_rate = RateLimiter::Settings{1s};
  answers = {{0, {}, ""}, {0, {}, ""}};
  FailureOf(Request("PUT"));
  ASSERT_FALSE(rates.empty());
  EXPECT_LT(rates.back().share, 0.3) << "two calls in a row";
  SteadyTime before = time.loop().SteadyNow();
  Call(Request("PUT"));
  EXPECT_GT(time.loop().SteadyNow() - before, 1500ms) << "the configured rate has become a lower one";
  time.Advance(1min);
  Call(Request("PUT"));
  EXPECT_EQ(rates.back().share, 1);
}

// RATE-4
TEST_F(ApiClientTest, EachServiceHasARateOfItsOwnBelowThatOfAll) {
  options.change_rate = RateLimiter::Settings{1s};
  http.latency = Duration::zero();
  answers = {{429, {}, ""}};
  Call(Request("PUT", "image"));
  SteadyTime before = time.loop().SteadyNow();
  for (int i = 0; i < 5; ++i) Call(Request("PUT", "compute"));
  EXPECT_LE(time.loop().SteadyNow() - before, 6s) << "the image service's refusal does not concern it";
  before = time.loop().SteadyNow();
  for (int i = 0; i < 10; ++i) Call(Request("PUT", i % 2 == 0 ? "compute" : "network"));
  EXPECT_GE(time.loop().SteadyNow() - before, 9s) << "all services together keep the configured rate";
}

// RATE-5
TEST_F(ApiClientTest, CallsThatWaitAreReported) {
  options.change_rate = RateLimiter::Settings{1s};
  TaskGroup tasks(time.loop(), log::Logger("test"));
  auto call = [](ApiClient& client, ApiRequest request) -> Task<> {
    co_await client.CallJson(std::move(request));
  };
  for (int i = 0; i < 5; ++i) tasks.Spawn("change", call(client(), Request("PUT")));
  time.Advance(1500ms);
  ASSERT_FALSE(rates.empty());
  EXPECT_EQ(rates.back().waiting, 3u);
  EXPECT_EQ(rates.back().share, 1);
  time.Run(tasks.Join());
  EXPECT_EQ(rates.back().waiting, 0u);
}

// RATE-6
TEST_F(ApiClientTest, WithoutFaultsNoCallWaits) {
  for (int i = 0; i < 200; ++i) Call(Request(i % 2 == 0 ? "GET" : "PUT", i % 3 == 0 ? "image" : "compute"));
  EXPECT_TRUE(rates.empty());
  Duration all{};
  for (const ApiCall& call : ended) all += call.duration;
  EXPECT_EQ(all, 200 * 10ms);
}

TEST_F(ApiClientTest, CallsThatFreeSomethingLetOthersGoFirst) {
  options.change_rate = RateLimiter::Settings{1s};
  http.latency = Duration::zero();
  Call(Request("POST"));
  TaskGroup tasks(time.loop(), log::Logger("test"));
  auto call = [](ApiClient& client, ApiRequest request) -> Task<> {
    co_await client.CallJson(std::move(request));
  };
  http.calls.clear();
  for (const char* method : {"DELETE", "DELETE", "POST", "POST"})
    tasks.Spawn(method, call(client(), Request(method)));
  time.Run(tasks.Join());
  std::vector<std::string> methods;
  for (const net::HttpCall& sent : http.calls) methods.push_back(sent.method);
  EXPECT_EQ(methods, (std::vector<std::string>{"POST", "POST", "DELETE", "DELETE"}));
}

TEST_F(ApiClientTest, BudgetsPauseByThemselves) {
  answers = {{429, {{"retry-after", "30"}}, ""}};
  TaskGroup tasks(time.loop(), log::Logger("test"));
  auto call = [](ApiClient& client, ApiRequest request) -> Task<> {
    co_await client.CallJson(std::move(request));
  };
  ApiRequest change = Request("POST");
  change.budget = "changes";
  tasks.Spawn("change", call(client(), std::move(change)));
  time.Advance(1s);
  Call(Request());
  EXPECT_EQ(http.calls.size(), 2u);
  time.Run(tasks.Stop());
}

TEST_F(ApiClientTest, FaultsOfTheServerAreOutlived) {
  options.network_repeats = 4;
  options.server_error_repeats = 4;
  answers = {{500, {}, ""}, {0, {}, ""}, {504, {}, ""}, {0, {}, ""}};
  ApiRequest request = Request("POST");
  request.may_be_sent_again = true;
  EXPECT_EQ(Call(request).status, 200);
  EXPECT_EQ(http.calls.size(), 5u);
  answers.assign(5, {500, {}, ""});
  EXPECT_EQ(StatusOf(FailureOf(request)), 500);
  answers = {{500, {}, ""}};
  EXPECT_EQ(StatusOf(FailureOf(Request("POST"))), 500) << "it may have been carried out";
}

TEST_F(ApiClientTest, AFaultCanAskForAnotherSignature) {
  options.read_fault = [](int, std::string_view) {
    Fault fault{Verdict::kInvalid, "expired", ""};
    fault.refuses_signature = true;
    return fault;
  };
  answers = {{400, {}, ""}};
  EXPECT_EQ(Call(Request()).status, 200);
  EXPECT_EQ(HeaderOf(http.calls.at(1), "Signature"), "2");
}

TEST(ApiClientFaults, WithoutAnAnswerNothingIsKnownAboutTheCall) {
  for (std::string remedy : {"", "look at the server's certificate"}) {
    Remedies remedies;
    remedies.no_answer = remedy;
    Failure failure(std::make_exception_ptr(
        net::HttpError(Verdict::kInvalid, "the certificate has expired", /*may_have_been_seen=*/false)));
    try {
      ThrowWithoutAnswer("GET /things", remedies, failure);
    } catch (const net::HttpError& error) {
      EXPECT_EQ(error.verdict(), Verdict::kRetry);
      EXPECT_THAT(error.message(), HasSubstr("the certificate has expired"));
      EXPECT_THAT(error.message(), EndsWith(remedy));
    }
  }
}

}  // namespace

}  // namespace nodepool::driver::cloud::api
