#include "driver/cloud/api/api_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <charconv>

#include "base/error.h"
#include "base/scope_exit.h"

namespace nodepool::driver::cloud::api {

namespace json = boost::json;

namespace {

constexpr int kCallsAtATime = 10;
constexpr int kUploadsAtATime = 4;
constexpr std::size_t kParseHere = 64 * 1024;
constexpr Duration kMaxSharedPause = std::chrono::seconds(2);
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

const std::string& BudgetName(const ApiRequest& request) {
  return request.budget.empty() ? request.service : request.budget;
}

// A refusal that says when to come back is about the moment, not about the call: of 413, which is also the
// answer to what is too large, only this shows which one is meant.
void ReadAsLater(Fault& fault, const net::HttpReply& refusal) {
  if (fault.verdict == Verdict::kInvalid && RetryAfter(refusal)) fault.verdict = Verdict::kRateLimited;
}

// After a proxy's 503 a change may have been carried out.
bool IsTooBusy(const ApiRequest& request, int status, const Fault& fault) {
  if (request.call.upload) return false;
  return fault.verdict == Verdict::kRateLimited || (status == 503 && request.is_idempotent());
}

bool IsServerError(int status, const Fault& fault) {
  return (status == 500 || status == 502 || status == 504) && fault.verdict == Verdict::kRetry;
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

// What an error says about an answer.
struct AnswerNames {
  std::string call;
  std::string remedy;
  std::string request_id;
};

std::string AddRemedy(std::string message, const std::string& remedy) {
  return remedy.empty() ? message : message + "; " + remedy;
}

json::value Parse(const std::string& text, const AnswerNames& names) {
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error) {
    std::string message = fmt::format("{} was answered with something that is no JSON: {}", names.call,
                                      FaultText(text.substr(0, 500)));
    throw Error(Verdict::kRetry,
                WithRequestId(AddRemedy(std::move(message), names.remedy), names.request_id));
  }
  return value;
}

Task<json::value> ParseAnswer(BlockingPool& pool, std::string text, AnswerNames names) {
  if (text.size() <= kParseHere) co_return Parse(text, names);
  auto parse = [text = std::move(text), names = std::move(names)]() { return Parse(text, names); };
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
      uploads_(kUploadsAtATime),
      change_rate_(loop_, options_.change_rate.value_or(RateLimiter::Settings())),
      read_rate_(loop_, options_.read_rate.value_or(RateLimiter::Settings())),
      logged_slowdowns_(loop_, [this](std::uint64_t more) {
        logger_.Info("{} more times in the last minute a service of cloud {} was overloaded", more,
                     options_.cloud);
      }) {}

ApiClient::Budget::Budget(Loop& loop, const Options& options)
    : changes(loop, options.change_rate.value_or(RateLimiter::Settings())),
      reads(loop, options.read_rate.value_or(RateLimiter::Settings())) {}

ApiClient::Budget& ApiClient::BudgetOf(const ApiRequest& request) {
  return budgets_.try_emplace(BudgetName(request), loop_, options_).first->second;
}

Task<net::HttpReply> ApiClient::Call(ApiRequest request) {
  Backoff pauses(kPauses, random_);
  Tries tries;
  while (true) {
    co_await WaitForTurn(request);
    SteadyTime sent = loop_.SteadyNow();
    Answer answer = co_await Send(request);
    if (!answer.reply) {
      bool is_last = ++tries.network > options_.network_repeats;
      if (is_last || !MayRepeatAfter(answer.reply.error(), request)) {
        ThrowWithoutAnswer(request.name, options_.remedies, answer.reply.error());
      }
      Duration pause = pauses.Next();
      co_await loop_.SleepFor(pause);
      continue;
    }
    net::HttpReply& reply = *answer.reply;
    if (reply.status < 400) co_return std::move(reply);
    Fault fault =
        options_.read_refusal ? options_.read_refusal(reply) : options_.read_fault(reply.status, reply.body);
    ReadAsLater(fault, reply);
    bool is_refused = fault.refuses_signature.value_or(reply.status == 401);
    // Once: a service that refuses a new credential as well has another reason.
    if (is_refused && answer.renew && !std::exchange(tries.has_renewed, true)) {
      answer.renew(reply);
      continue;
    }
    std::optional<Duration> pause = PauseAfter(request, reply, fault, tries, pauses, sent);
    if (!pause) {
      if (fault.request_id.empty()) fault.request_id = RequestIdOf(reply);
      throw MakeApiError(request.text, reply.status, std::move(fault));
    }
    co_await loop_.SleepFor(*pause);
  }
}

void ThrowWithoutAnswer(std::string_view call, const Remedies& remedies, const Failure& failure) {
  try {
    failure.Rethrow();
  } catch (const net::HttpError& error) {
    const std::string& remedy = error.is_unknown_host() ? remedies.unknown_host : remedies.no_answer;
    std::string message = error.message();
    if (!remedy.empty()) message = fmt::format("{}: {}; {}", call, message, remedy);
    // Without an answer nothing is known about the call, also where it is of no use to repeat it at once, as
    // with a certificate that has expired.
    Verdict verdict = error.verdict() == Verdict::kInvalid ? Verdict::kRetry : error.verdict();
    throw net::HttpError(verdict, std::move(message), error.may_have_been_seen(), error.is_unknown_host());
  }
}

std::string ApiClient::RequestIdOf(const net::HttpReply& reply) const {
  return options_.request_id ? options_.request_id(reply) : "";
}

Task<ApiReply> ApiClient::CallJson(ApiRequest request) {
  std::string text = request.text;
  net::HttpReply reply = co_await Call(std::move(request));
  AnswerNames names{std::move(text), options_.remedies.odd_answer, RequestIdOf(reply)};
  ApiReply result;
  result.status = reply.status;
  result.headers = std::move(reply.headers);
  result.bytes = reply.body.size();
  if (!reply.body.empty()) {
    result.body = co_await ParseAnswer(pool_, std::move(reply.body), std::move(names));
  }
  co_return result;
}

// How long to wait before the call is repeated; none: it is not.
std::optional<Duration> ApiClient::PauseAfter(const ApiRequest& request, const net::HttpReply& reply,
                                              const Fault& fault, Tries& tries, Backoff& pauses,
                                              SteadyTime sent) {
  if (IsTooBusy(request, reply.status, fault)) {
    RateOf(request).Refused(sent);
    if (++tries.busy > request.retries) return std::nullopt;
    return PauseService(request, reply, pauses.Next());
  }
  bool may_be_repeated =
      IsServerError(reply.status, fault) && request.is_idempotent() && !request.call.upload;
  if (!may_be_repeated || ++tries.server_errors > options_.server_error_repeats) return std::nullopt;
  return pauses.Next();
}

// Ends when the service's back-off is over; keeps the configured rates. Of the calls that waited for the end
// of a back-off only one at a time is sent, which may begin the next.
Task<> ApiClient::WaitForTurn(const ApiRequest& request) {
  const auto order = request.is_freeing() ? RateLimiter::Order::kLater : RateLimiter::Order::kFirst;
  Budget& budget = BudgetOf(request);
  ++budget.waiting;
  ScopeExit passed([&budget] { --budget.waiting; });
  while (true) {
    while (loop_.SteadyNow() < budget.paused_until) {
      SteadyTime until = budget.paused_until;
      co_await loop_.SleepUntil(until);
    }
    co_await RateOf(request).WaitForTurn(order);
    co_await (request.reads() ? read_rate_ : change_rate_).WaitForTurn(order);
    // The answer to another call may have begun a back-off meanwhile.
    if (loop_.SteadyNow() >= budget.paused_until) co_return;
  }
}

// Signs right before sending: signatures and tokens expire.
Task<ApiClient::Answer> ApiClient::Send(const ApiRequest& request) {
  Gate& gate = request.call.upload ? uploads_ : request.reads() ? reads_ : changes_;
  Gate::Pass pass = co_await gate.Enter();
  net::HttpCall call = request.call;
  call.may_be_repeated = request.is_idempotent();
  Signer::Renew renew = co_await signer_.Sign(call);
  SteadyTime sent = loop_.SteadyNow();
  Outcome<net::HttpReply> reply = co_await Attempt(SendCounted(request, std::move(call)));
  if (reply) {
    NoteAnswer(request, sent);
  } else {
    NoteNoAnswer(request, reply.error(), sent);
  }
  ReportRate(request);
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
  std::optional<Duration> wanted = RetryAfter(reply);
  Duration pause = wanted.value_or(otherwise);
  // Beyond that the lower rate protects the service.
  Duration shared = wanted.value_or(std::min(pause, kMaxSharedPause));
  SteadyTime& until = BudgetOf(request).paused_until;
  until = std::max(until, loop_.SteadyNow() + shared);
  ReportRate(request);
  if (logged_slowdowns_.Admits()) {
    logger_.Warning(
        "The {} service of cloud {} is overloaded ({}); backing off for {} s, then calling it at {:.0f} % of "
        "the "
        "usual rate",
        request.service, options_.cloud, reply.status, std::chrono::duration<double>(pause).count(),
        100 * RateOf(request).Share());
  }
  return pause;
}

void ApiClient::NoteAnswer(const ApiRequest& request, SteadyTime sent) {
  bool says_nothing = request.call.upload.has_value();  // its time depends on the file
  if (says_nothing || !RateOf(request).Answered(request.name, sent)) return;
  if (!logged_slowdowns_.Admits()) return;
  logger_.Warning(
      "The {} service of cloud {} answers much slower than usual ({:.1f} s to {}); calling it at {:.0f} % of "
      "the usual rate",
      request.service, options_.cloud, std::chrono::duration<double>(loop_.SteadyNow() - sent).count(),
      request.name, 100 * RateOf(request).Share());
}

// An address that is not known, or a certificate that is not valid, says nothing about the load.
void ApiClient::NoteNoAnswer(const ApiRequest& request, const Failure& failure, SteadyTime sent) {
  try {
    failure.Rethrow();
  } catch (const net::HttpError& error) {
    bool is_of_network = error.verdict() == Verdict::kRetry || error.verdict() == Verdict::kTimedOut;
    if (is_of_network && !error.is_unknown_host()) RateOf(request).Unanswered(sent);
  } catch (...) {
    return;
  }
}

void ApiClient::ReportRate(const ApiRequest& request) {
  const CallMetrics& metrics = options_.metrics;
  Budget& budget = BudgetOf(request);
  double share = std::min(budget.reads.Share(), budget.changes.Share());
  bool is_same = budget.reported_share == share && budget.reported_waiting == budget.waiting;
  if (metrics.observer == nullptr || is_same) return;
  budget.reported_share = share;
  budget.reported_waiting = budget.waiting;
  metrics.observer->ApiRateChanged(
      {metrics.provider, metrics.driver, BudgetName(request), share, budget.waiting});
}

void ApiClient::Count(const ApiRequest& request, int status, Duration duration) {
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
