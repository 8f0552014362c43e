#include "runners/github/admin_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "async/backoff.h"
#include "base/json_fields.h"
#include "base/rsa_key.h"
#include "base/text.h"

namespace nodepool::runners::github {
namespace {

constexpr int kRegistrationTries = 4;
constexpr Duration kBeforeAdminEnd = std::chrono::minutes(1);
constexpr Duration kUnknownEnd = std::chrono::minutes(10);  // of a token that does not say when it ends

Backoff::Settings RegistrationPauses() {
  return {.initial = std::chrono::milliseconds(500), .max = std::chrono::seconds(10)};
}

// A registration token is not known everywhere at once.
bool MayBeTooEarly(const Failure& failure) {
  return IsRefusedWith(failure, kUnauthorized) || IsRefusedWith(failure, kForbidden);
}

}  // namespace

std::optional<WallTime> EndOfToken(const std::string& token) {
  std::vector<std::string> parts = Split(token, '.');
  if (parts.size() != 3) return std::nullopt;
  Expected<std::string> claims = FromBase64Url(parts[1]);
  if (!claims) return std::nullopt;
  boost::system::error_code error;
  boost::json::value value = boost::json::parse(*claims, error);
  if (error || !value.is_object()) return std::nullopt;
  double end = NumberIn(value.get_object(), "exp");
  constexpr double kYear2200 = 7.3e9;
  if (!(end > 0 && end < kYear2200)) return std::nullopt;
  return FromSeconds(end);
}

AdminConnection::AdminConnection(Calls& calls, Login& login, Scope scope)
    : calls_(calls), login_(login), scope_(std::move(scope)) {}

Task<Admin> AdminConnection::Get() {
  Gate::Pass pass = co_await gate_.Enter();
  if (admin_ && calls_.loop().SteadyNow() < good_until_) co_return *admin_;
  admin_.reset();
  admin_ = co_await Make();
  co_return *admin_;
}

Task<std::string> AdminConnection::RegistrationToken() {
  RestCall call{.kind = "registration-token",
                .method = "POST",
                .target = scope_.actions + "/runners/registration-token"};
  net::HttpReply reply = co_await login_.Send(std::move(call));
  boost::json::value body = ReadJson("the registration token", reply);
  std::string token = body.is_object() ? TextIn(body.get_object(), "token") : "";
  if (token.empty()) throw Error(Verdict::kRetry, "GitHub's answer has no registration token");
  co_return token;
}

Task<net::HttpReply> AdminConnection::Register(std::string token) {
  boost::json::object body{{"url", scope_.url}, {"runner_event", "register"}};
  net::HttpCall call{
      .method = "POST",
      .url = scope_.api + "/actions/runner-registration",
      .headers = {{"Authorization", "RemoteAuth " + token}, {"Content-Type", "application/json"}},
      .body = boost::json::serialize(body),
      .may_be_repeated = true};
  Backoff pauses(RegistrationPauses(), calls_.random());
  for (int i = 1;; ++i) {
    Outcome<net::HttpReply> reply = co_await Attempt(calls_.Send("registration", call));
    if (reply) co_return std::move(*reply);
    if (i >= kRegistrationTries || !MayBeTooEarly(reply.error())) reply.error().Rethrow();
    co_await calls_.loop().SleepFor(pauses.Next());
  }
}

Task<Admin> AdminConnection::Make() {
  std::string token = co_await RegistrationToken();
  net::HttpReply reply = co_await Register(std::move(token));
  boost::json::value body = ReadJson("the registration", reply);
  Admin admin;
  if (body.is_object()) {
    admin.base = TextIn(body.get_object(), "url");
    admin.token = TextIn(body.get_object(), "token");
  }
  while (admin.base.ends_with('/')) admin.base.pop_back();
  if (!admin.base.starts_with("https://") || admin.token.empty())
    throw Error(Verdict::kRetry,
                "GitHub's answer to the registration has no address and token of the Actions service");
  WallTime now = calls_.loop().Now();
  Duration lasts = std::clamp<Duration>(EndOfToken(admin.token).value_or(now + kUnknownEnd) - now,
                                        Duration::zero(), std::chrono::hours(24));
  good_until_ = calls_.loop().SteadyNow() + lasts - std::min(kBeforeAdminEnd, lasts / 2);
  co_return admin;
}

}  // namespace nodepool::runners::github
