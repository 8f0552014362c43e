#include "driver/cloud/api/api_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <charconv>

#include "async/backoff.h"
#include "base/scope_exit.h"

namespace nodepool::driver::cloud::api {

namespace json = boost::json;

namespace {

constexpr int kCallsAtATime = 10;
constexpr int kUploadsAtATime = 4;
constexpr std::size_t kParseHere = 64 * 1024;
constexpr Duration kMaxPause = std::chrono::minutes(5);
constexpr Backoff::Settings kPauses{std::chrono::milliseconds(500), std::chrono::seconds(60)};

// In seconds, or none: dates are rare and not supported.
std::optional<Duration> RetryAfter(const net::HttpReply& reply) {
  const std::string& text = reply.Header("retry-after");
  int seconds = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || seconds < 0)
    return std::nullopt;
  return std::min<Duration>(std::chrono::seconds(seconds), kMaxPause);
}

// A service that answers 429 has done nothing; after a proxy's 503 a change may have been carried out.
bool IsTooBusy(const ApiRequest& request, int status) {
  if (request.call.upload) return false;
  if (status == 429) return true;
  return status == 503 && request.is_idempotent();
}

bool MayRepeatAfter(const Failure& failure, const ApiRequest& request) {
  if (request.call.upload) return false;
  try {
    failure.Rethrow();
  } catch (const net::HttpError& error) {
    return error.verdict() == Verdict::kRetry && (!error.may_have_been_seen() || request.is_idempotent());
  } catch (...) {
    return false;
  }
}

json::value Parse(const std::string& text, const std::string& call) {
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error) {
    throw Error(Verdict::kRetry, fmt::format("{} was answered with something that is no JSON: {}", call,
                                             FaultText(text.substr(0, 500))));
  }
  return value;
}

Task<json::value> ParseAnswer(BlockingPool& pool, std::string text, std::string call) {
  if (text.size() <= kParseHere) co_return Parse(text, call);
  auto parse = [text = std::move(text), call = std::move(call)]() { return Parse(text, call); };
  json::value value = co_await OnBlockingPool(pool, std::move(parse));
  co_return value;
}

}  // namespace

ApiClient::ApiClient(Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http, Signer& signer,
                     log::Logger logger, Options options)
    : loop_(loop),
      pool_(pool),
      random_(random),
      http_(http),
      signer_(signer),
      logger_(std::move(logger)),
      options_(std::move(options)),
      reads_(kCallsAtATime),
      changes_(kCallsAtATime),
      uploads_(kUploadsAtATime) {
  if (options_.change_rate) change_rate_.emplace(loop_, *options_.change_rate);
}

Task<net::HttpReply> ApiClient::Call(ApiRequest request) {
  net::HttpReply reply = co_await Repeat(request);
  if (reply.status >= 400) {
    throw MakeApiError(request.text, reply.status, options_.read_fault(reply.status, reply.body));
  }
  co_return reply;
}

Task<ApiReply> ApiClient::CallJson(ApiRequest request) {
  std::string text = request.text;
  net::HttpReply reply = co_await Call(std::move(request));
  ApiReply result;
  result.status = reply.status;
  result.headers = std::move(reply.headers);
  result.bytes = reply.body.size();
  if (!reply.body.empty()) {
    result.body = co_await ParseAnswer(pool_, std::move(reply.body), std::move(text));
  }
  co_return result;
}

Task<net::HttpReply> ApiClient::Repeat(const ApiRequest& request) {
  Backoff pauses(kPauses, random_);
  bool has_renewed = false;
  for (int tries = 1;; ++tries) {
    co_await WaitForTurn(request);
    Answer answer = co_await Send(request);
    if (!answer.reply) {
      if (tries > 1 || !MayRepeatAfter(answer.reply.error(), request)) answer.reply.error().Rethrow();
      Duration pause = pauses.Next();
      co_await loop_.SleepFor(pause);
      continue;
    }
    if (answer.reply->status == 401 && answer.renew && !has_renewed) {
      has_renewed = true;
      answer.renew();
      continue;
    }
    if (!IsTooBusy(request, answer.reply->status) || tries > request.retries) {
      co_return std::move(*answer.reply);
    }
    Duration pause = PauseService(request, *answer.reply, pauses.Next());
    co_await loop_.SleepFor(pause);
  }
}

// Ends when the service's back-off is over; limits changes to the configured rate.
Task<> ApiClient::WaitForTurn(const ApiRequest& request) {
  if (change_rate_ && !request.reads()) co_await change_rate_->WaitForTurn();
  while (loop_.SteadyNow() < paused_until_[request.service]) {
    SteadyTime until = paused_until_[request.service];
    co_await loop_.SleepUntil(until);
  }
}

// Signs right before sending: signatures and tokens expire.
Task<ApiClient::Answer> ApiClient::Send(const ApiRequest& request) {
  Gate& gate = request.call.upload ? uploads_ : request.reads() ? reads_ : changes_;
  Gate::Pass pass = co_await gate.Enter();
  net::HttpCall call = request.call;
  Signer::Renew renew = co_await signer_.Sign(call);
  Outcome<net::HttpReply> reply = co_await Attempt(SendCounted(request, std::move(call)));
  Answer answer{std::move(reply), std::move(renew)};
  co_return answer;
}

Task<net::HttpReply> ApiClient::SendCounted(const ApiRequest& request, net::HttpCall call) {
  int status = 0;
  SteadyTime started = loop_.SteadyNow();
  ScopeExit count([&] { Count(request, status, loop_.SteadyNow() - started); });
  net::HttpReply reply = co_await http_.Send(std::move(call));
  status = reply.status;
  co_return reply;
}

Duration ApiClient::PauseService(const ApiRequest& request, const net::HttpReply& reply, Duration otherwise) {
  Duration pause = RetryAfter(reply).value_or(otherwise);
  paused_until_[request.service] = loop_.SteadyNow() + pause;
  logger_.Warning("The {} service of cloud {} is overloaded ({}); backing off for {} s", request.service,
                  options_.cloud, reply.status, std::chrono::duration<double>(pause).count());
  return pause;
}

void ApiClient::Count(const ApiRequest& request, int status, Duration duration) const {
  const CallMetrics& metrics = options_.metrics;
  if (metrics.observer == nullptr) return;
  ApiCall call;
  call.provider = metrics.provider;
  call.driver = metrics.driver;
  call.service = request.service;
  call.method = request.call.method;
  call.name = request.name;
  if (status != 0) call.status = status;
  call.duration = duration;
  metrics.observer->ApiCallEnded(call);
}

}  // namespace nodepool::driver::cloud::api
