#include "driver/cloud/api/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "async/task_group.h"
#include "async/testing/virtual_time.h"
#include "base/clock.h"
#include "base/json_fields.h"
#include "base/testing/test_environment.h"
#include "driver/cloud/api/scripted_client_for_test.h"

namespace nodepool::driver::cloud::api {

namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

class CredentialFileTest : public ::testing::Test {
 protected:
  CredentialFileTest() { path_ = folder_ + "/key.json"; }

  // What is read of a file with that content, or why it cannot be.
  std::string Read(const std::string& content) {
    std::ofstream(path_) << content;
    try {
      return ReadCredentialFile<std::string>(path_, [](const boost::json::object& file) {
        return Needed(file, "id") + " " + UrlIn(file, "url", "http://usual");
      });
    } catch (const Error& error) {
      return error.message();
    }
  }

  testing::TemporaryFolder temporary_;
  std::string folder_ = temporary_.path();
  std::string path_;
};

TEST_F(CredentialFileTest, MembersOfTheFile) {
  EXPECT_EQ(Read(R"({"id": "a"})"), "a http://usual");
  EXPECT_EQ(Read(R"({"id": "a", "url": "https://other"})"), "a https://other");
}

TEST_F(CredentialFileTest, FaultsNameTheFile) {
  EXPECT_EQ(Read("[]"), path_ + ": it is no JSON object");
  EXPECT_EQ(Read("{}"), "the credentials file " + path_ + ": it has no id");
  EXPECT_EQ(Read(R"({"id": "a", "url": "ftp://x"})"),
            "the credentials file " + path_ + ": its url is no URL with http or https");
}

struct Key {
  int number = 0;
  WallTime expires = WallTime::max();
};

class CredentialSourceTest : public ::testing::Test {
 protected:
  Task<Key> Fetch() {
    ++fetches;
    co_await time.loop().SleepFor(1s);
    if (status != 0) throw ApiError(Verdict::kInvalid, "who are you?", status);
    if (is_broken) throw Error(Verdict::kRetry, "no answer");
    co_return Key{fetches, time.loop().Now() + life};
  }
  std::shared_ptr<const Key> Get() { return time.Run(source.Get()); }

  testing::VirtualTime time;
  int fetches = 0;
  int status = 0;
  bool is_broken = false;
  Duration life = 1h;
  CredentialSource<Key> source{time.loop(), [this] { return Fetch(); }};
};

TEST_F(CredentialSourceTest, ManyWaitForOneRequest) {
  TaskGroup tasks(time.loop(), log::Logger("test"));
  auto get = [](CredentialSource<Key>& source, int& got) -> Task<> {
    std::shared_ptr<const Key> key = co_await source.Get();
    got += key->number;
  };
  int got = 0;
  for (int i = 0; i < 5; ++i) tasks.Spawn("get", get(source, got));
  time.Run(tasks.Join());
  EXPECT_EQ(got, 5);
  EXPECT_EQ(fetches, 1);
}

TEST_F(CredentialSourceTest, ItIsRenewedBeforeItExpires) {
  Get();
  time.Advance(57min);
  EXPECT_EQ(Get()->number, 1);
  time.Advance(2min);
  EXPECT_EQ(Get()->number, 2);
}

TEST_F(CredentialSourceTest, AShortOneIsUsedForHalfOfItsLife) {
  life = 20s;
  EXPECT_EQ(Get()->number, 1);
  time.Advance(9s);
  EXPECT_EQ(Get()->number, 1);
  time.Advance(1s);
  EXPECT_EQ(Get()->number, 2);
}

// The issuer does not renew its credentials, or this host's clock is ahead.
TEST_F(CredentialSourceTest, OneThatHasExpiredAlreadyIsUsedForSomeMinutes) {
  life = -1h;
  for (int i = 0; i < 3; ++i) {
    std::shared_ptr<const Key> key = Get();
    EXPECT_EQ(key->number, 1);
    source.Discard(key);
  }
  EXPECT_EQ(fetches, 1) << "not before each call, although services refuse it";
  life = 1h;
  time.Advance(5min);
  EXPECT_EQ(Get()->number, 2);
}

TEST_F(CredentialSourceTest, OneThatCannotBeReplacedIsUsedUntilItExpires) {
  Get();
  is_broken = true;
  time.Advance(59min);
  EXPECT_EQ(Get()->number, 1);
  EXPECT_EQ(fetches, 2);
  EXPECT_EQ(Get()->number, 1);
  EXPECT_EQ(fetches, 2) << "not tried again at once";
  time.Advance(1min);
  EXPECT_THROW(Get(), Error);
  is_broken = false;
  EXPECT_EQ(Get()->number, 4);
}

TEST_F(CredentialSourceTest, ARefusedOneIsNotUsedWhileItsSuccessorIsFetched) {
  std::shared_ptr<const Key> first = Get();
  is_broken = true;
  time.Advance(59min);
  Get();
  source.Discard(first);
  EXPECT_THROW(Get(), Error);
}

TEST_F(CredentialSourceTest, ADiscardedOneIsFetchedAgainOnce) {
  std::shared_ptr<const Key> first = Get();
  source.Discard(first);
  EXPECT_EQ(Get()->number, 2);
  source.Discard(first);
  EXPECT_EQ(Get()->number, 2) << "discarding an old one does not concern the new one";
}

TEST_F(CredentialSourceTest, ARefusalIsRememberedForAWhile) {
  status = 401;
  for (int i = 0; i < 10; ++i) EXPECT_THROW(Get(), Error);
  EXPECT_EQ(fetches, 1);
  time.Advance(16s);
  status = 0;
  EXPECT_EQ(Get()->number, 2);
}

TEST_F(CredentialSourceTest, ABrokenConnectionIsNotARefusal) {
  is_broken = true;
  EXPECT_THROW(Get(), Error);
  is_broken = false;
  EXPECT_EQ(Get()->number, 2);
}

class TokenClientTest : public ::testing::Test {
 protected:
  static ApiClient::Options Options() {
    ApiClient::Options options;
    options.cloud = "cloud";
    options.server_error_repeats = 2;
    return options;
  }
  BearerToken Exchange() {
    return time.Run(client.Exchange("http://o/token", {{"grant_type", "x"}, {"secret", "a&b"}}),
                    std::chrono::hours(1));
  }
  Error Fails() {
    Outcome<BearerToken> token =
        time.Run(Attempt(client.Exchange("http://o/token", {{"grant_type", "x"}})), std::chrono::hours(1));
    if (token) return Error(Verdict::kFail, "it succeeded");
    return Error(token.error().verdict(), token.error().message());
  }

  testing::VirtualTime time;
  net::HttpReply reply{200, {}, R"({"access_token": "t", "expires_in": 3600})"};
  ScriptedClient http{time.loop(), [this](const net::HttpCall&) { return reply; }};
  SeededRandom random{1};
  BlockingPool pool{0};
  TokenClient client{
      time.loop(), pool, random, http, log::Logger("test"), Options(), [](std::string_view text) {
        return text.find("time") != std::string_view::npos;
      }};
};

TEST_F(TokenClientTest, ATokenForAForm) {
  BearerToken token = Exchange();
  EXPECT_EQ(token.text, "t");
  EXPECT_EQ(token.expires, time.loop().Now() + std::chrono::hours(1));
  EXPECT_EQ(http.calls.front().body, "grant_type=x&secret=a%26b");
}

TEST_F(TokenClientTest, TokensWithOtherMembers) {
  const TokenMembers members{.text = "accessToken", .end = "expireTime"};
  auto read = [&](const char* text) { return client.ReadToken({200, {}, ParsedJson(text), 0}, members); };
  BearerToken token = read(R"({"accessToken": "t", "expireTime": "2026-01-02T03:04:05Z"})");
  EXPECT_EQ(token.text, "t");
  EXPECT_EQ(token.expires, ParseIso8601("2026-01-02T03:04:05Z"));
  for (const char* text :
       {R"({"accessToken": "t"})", R"({"accessToken": "t\r\nX: y", "expireTime": "2026-01-02T03:04:05Z"})",
        R"({"accessToken": "t", "expireTime": "soon"})", R"({"access_token": "t", "expires_in": 9})"})
    EXPECT_THROW(read(text), Error) << text;
}

TEST_F(TokenClientTest, SignedCallsHaveTheToken) {
  BearerSigner::Tokens tokens(time.loop(), [this] { return client.Exchange("http://o/token", {}); });
  BearerSigner signer(tokens);
  net::HttpCall call;
  Signer::Renew renew = time.Run(signer.Sign(call));
  EXPECT_EQ(HeaderOf(call, "Authorization"), "Bearer t");
  reply.body = R"({"access_token": "u", "expires_in": 3600})";
  renew({401, {}, ""});
  net::HttpCall next;
  time.Run(signer.Sign(next));
  EXPECT_EQ(HeaderOf(next, "Authorization"), "Bearer u");
}

TEST_F(TokenClientTest, ARefusalIsOfTheAccount) {
  reply = {400, {}, R"({"error": "invalid_grant", "error_description": "Expired."})"};
  Error error = Fails();
  EXPECT_EQ(error.verdict(), Verdict::kRetry);
  EXPECT_THAT(error.message(), HasSubstr("invalid_grant: Expired; check the credentials of this provider"));
  EXPECT_EQ(http.calls.size(), 1u);
  reply = {403, {}, R"({"error": {"message": "as other services say it"}})"};
  EXPECT_THAT(Fails().message(), HasSubstr("as other services say it"));
}

TEST_F(TokenClientTest, AWrongClockIsCorrected) {
  WallTime theirs = time.loop().Now() + std::chrono::minutes(10);
  reply = {400, {{"date", HttpDate(theirs)}}, R"({"error": "x", "error_description": "bad time"})"};
  Fails();
  EXPECT_GE(client.clock().offset(), std::chrono::seconds(590));
}

TEST_F(TokenClientTest, HostileAnswers) {
  for (const char* body : {"", "[]", "{}", R"({"access_token": "a\nb"})", R"({"access_token": 7.5e300})"}) {
    reply = {200, {}, body};
    EXPECT_EQ(Fails().verdict(), Verdict::kRetry) << body;
  }
  reply = {200, {}, R"({"access_token": "t", "expires_in": 1e300})"};
  WallTime expires = Exchange().expires;
  EXPECT_LE(expires, time.loop().Now() + std::chrono::hours(24));
}

TEST_F(TokenClientTest, ATokenOfTheMachine) {
  Task<BearerToken> asked =
      client.OfMachine("http://metadata/token", {{"Metadata", "true"}}, "there is none");
  EXPECT_EQ(time.Run(std::move(asked)).text, "t");
  EXPECT_EQ(HeaderOf(http.calls.front(), "Metadata"), "true");
  EXPECT_FALSE(http.calls.front().uses_proxy);
  reply = {404, {}, "no"};
  Task<BearerToken> again = client.OfMachine("http://metadata/token", {}, "there is none");
  Outcome<BearerToken> token = time.Run(Attempt(std::move(again)), std::chrono::hours(1));
  EXPECT_EQ(token.error().verdict(), Verdict::kRetry);
  EXPECT_THAT(token.error().message(), ::testing::StartsWith("there is none: "));
}

TEST_F(TokenClientTest, ATokenThatAnotherOneIsAskedForWith) {
  SubjectSource source{"", "http://idp/", {{"X-A", "b"}}, ""};
  reply.body = " subject\n";
  EXPECT_EQ(time.Run(client.ReadSubject(source)), "subject");
  EXPECT_EQ(HeaderOf(http.calls.front(), "X-A"), "b");
  source.field = "value";
  reply.body = R"({"value": "field"})";
  EXPECT_EQ(time.Run(client.ReadSubject(source)), "field");
  for (const char* body : {"{}", "[]", "no"}) {
    reply.body = body;
    EXPECT_THROW(time.Run(client.ReadSubject(source)), Error) << body;
  }
}

TEST_F(TokenClientTest, WhatIsConfiguredWronglyMayBeCorrected) {
  auto fetch = []() -> Task<BearerToken> {
    throw Error(Verdict::kInvalid, "no such file");
    co_return BearerToken{};
  };
  Outcome<BearerToken> token = time.Run(Attempt(client.Fetch(fetch)));
  EXPECT_EQ(token.error().verdict(), Verdict::kRetry);
  EXPECT_EQ(token.error().message(), "no such file");
}

TEST_F(TokenClientTest, AClockThatIsWrongIsCorrectedOnce) {
  reply = {400,
           {{"date", HttpDate(time.loop().Now() + std::chrono::minutes(10))}},
           R"({"error": "invalid_grant", "error_description": "wrong time"})"};
  auto fetch = [this] { return client.Exchange("http://o/token", {}); };
  EXPECT_FALSE(time.Run(Attempt(client.Fetch(fetch)), std::chrono::hours(1)));
  EXPECT_EQ(http.calls.size(), 2u);
}

}  // namespace

}  // namespace nodepool::driver::cloud::api
