#include "drivers/openstack/session.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>

#include "async/backoff.h"
#include "drivers/openstack/faults.h"

namespace nodepool::drivers::openstack {

namespace json = boost::json;

namespace {

constexpr int kCallsAtATime = 10;
constexpr int kUploadsAtATime = 4;
constexpr int kRetries = 5;
constexpr std::size_t kMaxAnswer = 64 << 20;
constexpr std::size_t kParseHere = 64 * 1024;
constexpr Duration kLongestPause = std::chrono::minutes(5);
constexpr Backoff::Settings kPauses{std::chrono::milliseconds(500), std::chrono::seconds(60)};

std::string NameOf(const ApiCall& call) {
  return fmt::format("{} {} {}", call.method, ToString(call.service), call.path);
}

json::value Parse(const std::string& text, const std::string& place) {
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error) {
    throw Error(Verdict::kRetry, fmt::format("{} was answered with something that is no JSON: {}", place,
                                             FaultText(text.substr(0, 500))));
  }
  return value;
}

// Seconds, or none: dates are rare and not worth their bugs.
std::optional<Duration> RetryAfter(const net::HttpReply& reply) {
  const std::string& text = reply.Header("retry-after");
  int seconds = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || seconds < 0)
    return std::nullopt;
  return std::min<Duration>(std::chrono::seconds(seconds), kLongestPause);
}

// A service that is too busy did nothing; what a proxy says about a change is not
// known so well.
bool MayRepeat(const ApiCall& call, int status) {
  if (call.upload) return false;
  if (status == 429) return true;
  return status == 503 && call.method != "POST";
}

// The service as the header with the microversion calls it.
std::string NameForVersions(Service service) {
  return service == Service::kBlockStorage ? "volume" : std::string(ToString(service));
}

}  // namespace

Task<json::value> ParseAnswer(BlockingPool& pool, std::string text, std::string place) {
  if (text.size() <= kParseHere) co_return Parse(text, place);
  auto parse = [text = std::move(text), place = std::move(place)]() { return Parse(text, place); };
  json::value value = co_await OnBlockingPool(pool, std::move(parse));
  co_return value;
}

Session::Session(Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http, CloudConfig cloud,
                 Options options)
    : loop_(loop),
      pool_(pool),
      random_(random),
      http_(http),
      cloud_(std::move(cloud)),
      options_(std::move(options)),
      tokens_(loop, http, cloud_),
      endpoints_(http, cloud_, tokens_),
      reads_(kCallsAtATime),
      changes_(kCallsAtATime),
      uploads_(kUploadsAtATime) {}

Task<bool> Session::Has(Service service) {
  std::shared_ptr<const Endpoint> endpoint = co_await endpoints_.Of(service);
  co_return endpoint != nullptr;
}

Task<bool> Session::TakesMicroversion(VersionNumber version) {
  std::shared_ptr<const Endpoint> endpoint = co_await endpoints_.Of(Service::kCompute);
  VersionNumber configured = cloud_.Of(Service::kCompute).default_microversion;
  co_return endpoint != nullptr&& version <= (configured == VersionNumber() ? endpoint->most : configured);
}

Task<std::string> Session::ProjectId() {
  std::shared_ptr<const Token> token = co_await tokens_.Get();
  co_return token->project_id;
}

Task<ApiReply> Session::Call(ApiCall call) {
  std::string name = NameOf(call);
  net::HttpReply reply = co_await SendPatiently(std::move(call));
  if (reply.status >= 400) {
    ApiError fault = MapFault(name, reply.status, reply.body);
    throw fault;
  }
  ApiReply result;
  result.status = reply.status;
  result.headers = std::move(reply.headers);
  if (!reply.body.empty()) {
    result.body = co_await ParseAnswer(pool_, std::move(reply.body), std::move(name));
  }
  co_return result;
}

Task<net::HttpReply> Session::SendPatiently(ApiCall call) {
  Backoff pauses(kPauses, random_);
  bool has_renewed = false;
  int retries = cloud_.Of(call.service).status_code_retries.value_or(kRetries);
  for (int tries = 1;; ++tries) {
    std::shared_ptr<const Token> token = co_await tokens_.Get();
    std::shared_ptr<const Endpoint> endpoint = co_await endpoints_.Of(call.service);
    if (endpoint == nullptr) {
      throw Error(Verdict::kInvalid, fmt::format("cloud {} has no {} service in its catalog{}", cloud_.name,
                                                 ToString(call.service),
                                                 cloud_.region.empty() ? "" : " of region " + cloud_.region));
    }
    co_await WaitForTurn(call);
    std::string url = endpoint->url + call.path + (call.query.empty() ? "" : "?" + call.query);
    std::string microversion = MicroversionFor(call, *endpoint);
    net::HttpReply reply;
    std::exception_ptr error;
    bool may_repeat = false;
    try {
      reply = co_await SendOnce(call, token, std::move(url), std::move(microversion));
    } catch (const net::HttpError& fault) {
      may_repeat = fault.verdict() == Verdict::kRetry && tries == 1 && !call.upload &&
                   (!fault.may_have_been_seen() || call.method != "POST");
      error = std::current_exception();
    }
    if (error && !may_repeat) std::rethrow_exception(error);
    if (!error && reply.status == 401 && !has_renewed && !token->text.empty()) {
      has_renewed = true;
      tokens_.Discard(token);
      continue;
    }
    if (!error && (!MayRepeat(call, reply.status) || tries > retries)) co_return reply;
    Duration pause = pauses.Next();
    if (!error) {
      pause = RetryAfter(reply).value_or(pause);
      paused_until_[call.service] = loop_.SteadyNow() + pause;
      logger_.Warning("The {} service of cloud {} is too busy ({}); it is left alone for {} s",
                      ToString(call.service), cloud_.name, reply.status,
                      std::chrono::duration<double>(pause).count());
    }
    co_await loop_.SleepFor(pause);
  }
}

// Not while the service wants to be left alone; changes no faster than configured.
Task<> Session::WaitForTurn(const ApiCall& call) {
  if (options_.rate && call.changes_something()) {
    SteadyTime when = std::max(loop_.SteadyNow(), next_change_);
    next_change_ = when + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*options_.rate));
    if (when > loop_.SteadyNow()) co_await loop_.SleepUntil(when);
  }
  while (loop_.SteadyNow() < paused_until_[call.service]) {
    SteadyTime until = paused_until_[call.service];
    co_await loop_.SleepUntil(until);
  }
}

// Empty: none is named.
std::string Session::MicroversionFor(const ApiCall& call, const Endpoint& endpoint) const {
  VersionNumber configured = cloud_.Of(call.service).default_microversion;
  if (configured == VersionNumber()) {
    VersionNumber version = std::min(call.microversion, endpoint.most);
    return version == VersionNumber() ? "" : ToString(version);
  }
  bool is_range_known = endpoint.most != VersionNumber();
  if (is_range_known && (configured < endpoint.least || endpoint.most < configured)) {
    throw Error(
        Verdict::kInvalid,
        fmt::format("cloud {}: the default microversion {} of the {} service is not between {} and {}, "
                    "which the service takes",
                    cloud_.name, ToString(configured), ToString(call.service), ToString(endpoint.least),
                    ToString(endpoint.most)));
  }
  return ToString(configured);
}

Task<net::HttpReply> Session::SendOnce(const ApiCall& call, std::shared_ptr<const Token> token,
                                       std::string url, std::string microversion) {
  Gate& gate = call.upload ? uploads_ : call.changes_something() ? changes_ : reads_;
  Gate::Pass pass = co_await gate.Enter();
  net::HttpCall request = NewCall(cloud_, call.method, std::move(url));
  request.max_bytes = kMaxAnswer;
  if (!token->text.empty()) request.headers.emplace_back("X-Auth-Token", token->text);
  if (!microversion.empty()) {
    request.headers.emplace_back("OpenStack-API-Version", NameForVersions(call.service) + " " + microversion);
    if (call.service == Service::kCompute)
      request.headers.emplace_back("X-OpenStack-Nova-API-Version", microversion);
  }
  if (call.body) {
    request.headers.emplace_back("Content-Type", "application/json");
    request.body = json::serialize(*call.body);
  }
  if (call.upload) {
    request.headers.emplace_back("Content-Type", "application/octet-stream");
    request.upload = call.upload;
    if (call.upload_limit) request.timeouts.total = *call.upload_limit;
    // The image's store may take its time after the last byte.
    request.timeouts.answer = std::max<Duration>(request.timeouts.answer, std::chrono::minutes(10));
  }
  SteadyTime started = loop_.SteadyNow();
  net::HttpReply reply;
  std::exception_ptr error;
  try {
    reply = co_await http_.Send(std::move(request));
  } catch (...) {
    error = std::current_exception();
  }
  Tell(call, error ? 0 : reply.status, started);
  if (error) std::rethrow_exception(error);
  co_return reply;
}

void Session::Tell(const ApiCall& call, int status, SteadyTime started) const {
  if (!options_.observer) return;
  ApiCallEnd end{call.service, call.method, call.path, status, loop_.SteadyNow() - started};
  options_.observer(end);
}

}  // namespace nodepool::drivers::openstack
