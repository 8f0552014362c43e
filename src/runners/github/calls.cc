#include "runners/github/calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "async/attempt.h"
#include "base/version.h"
#include "net/http/url.h"
#include "runners/metrics.h"

namespace nodepool::runners::github {
namespace {

constexpr std::size_t kMaxAnswer = std::size_t{8} << 20;
constexpr int kFirstRefusal = 400;

std::string NameOf(const net::HttpCall& call) {
  return fmt::format("{} {}", call.method, net::UrlForLog(call.url));
}

}  // namespace

Calls::Calls(Loop& loop, Random& random, net::HttpClient& http, metrics::Metrics& metrics, Options options)
    : loop_(loop),
      random_(random),
      http_(http),
      metrics_(metrics),
      options_(std::move(options)),
      logger_("nodepool.runners") {
  if (options_.ca_path.empty()) return;
  auto tls = std::make_shared<net::TlsSettings>();
  tls->ca_path = options_.ca_path;
  tls_ = std::move(tls);
}

Task<net::HttpReply> Calls::Send(std::string_view kind, net::HttpCall call) {
  co_await AwaitPause(kind);
  call.tls = tls_;
  call.proxy = options_.proxy;
  call.max_bytes = kMaxAnswer;
  call.headers.emplace_back("User-Agent", options_.user_agent);
  std::string name = NameOf(call);
  Outcome<net::HttpReply> reply = co_await Attempt(http_.Send(std::move(call)));
  Count(kind, reply ? std::to_string(reply->status) : "error");
  if (!reply) reply.error().Rethrow();
  if (reply->status < kFirstRefusal) co_return std::move(*reply);
  NotePause(kind, *reply);
  throw ErrorOf(name, *reply);
}

Duration Calls::PauseOf(std::string_view kind) const {
  auto paused = paused_until_.find(kind);
  if (paused == paused_until_.end()) return Duration::zero();
  return std::max<Duration>(Duration::zero(), paused->second - loop_.SteadyNow());
}

Task<> Calls::AwaitPause(std::string_view kind) {
  for (Duration pause = PauseOf(kind); pause > Duration::zero(); pause = PauseOf(kind))
    co_await loop_.SleepFor(pause);
}

// With up to a tenth more, so that not all daemons return at the same moment.
void Calls::NotePause(std::string_view kind, const net::HttpReply& reply) {
  std::optional<Duration> asked = AskedPause(reply, loop_.Now());
  if (!asked) return;
  auto jitter = static_cast<std::int64_t>(random_.Between(0, static_cast<double>(asked->count()) / 10));
  paused_until_[kind] = loop_.SteadyNow() + *asked + Duration(jitter);
  logger_.Warning("{}: the service requests fewer calls: no calls of the kind {} for {} s", options_.service,
                  kind, std::chrono::duration_cast<std::chrono::seconds>(*asked).count());
}

void Calls::Count(std::string_view kind, std::string result) {
  metrics_.Add(kCallsCounter, {options_.service, std::string(kind), std::move(result)});
}

Task<bool> IsFound(Task<net::HttpReply> call) {
  Outcome<net::HttpReply> reply = co_await Attempt(std::move(call));
  if (!reply && !FailedWith(reply, Verdict::kNotFound)) reply.error().Rethrow();
  co_return reply.has_value();
}

Calls::Options OptionsFor(const config::RunnerService& service) {
  std::string user_agent = boost::json::serialize(
      boost::json::object{{"system", "nodepool"}, {"version", Version()}, {"subsystem", "runners"}});
  return {.service = service.name,
          .ca_path = service.ca,
          .proxy = service.proxy,
          .user_agent = std::move(user_agent)};
}

}  // namespace nodepool::runners::github
