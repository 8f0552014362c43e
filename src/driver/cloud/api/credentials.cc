#include "driver/cloud/api/credentials.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/json_fields.h"
#include "base/small_file.h"
#include "base/text.h"
#include "driver/cloud/api/url_text.h"

namespace nodepool::driver::cloud::api {

namespace json = boost::json;

void ServerClock::CorrectAfter(const net::HttpReply& refusal, std::string_view call,
                               const std::string& request_id) {
  constexpr Duration kTolerated = std::chrono::seconds(60);
  std::optional<WallTime> time = ParseHttpDate(refusal.Header("date"));
  if (!time) return;
  Duration offset = *time - loop_.Now();
  if (std::chrono::abs(offset - offset_) < kTolerated) return;
  offset_ = std::chrono::abs(offset) < kTolerated ? Duration(0) : offset;
  if (offset_ == Duration(0)) return;
  std::string message = fmt::format(
      "The clock of this host is {} s {} that of {}, which refused {} for it; calls are signed with {}'s "
      "time now. "
      "Correct the clock",
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::abs(offset_)).count(),
      offset_ > Duration(0) ? "behind" : "ahead of", cloud_, call, cloud_);
  logger_.Warning("{}", WithRequestId(std::move(message), request_id));
}

std::string Needed(const boost::json::object& object, const char* key) {
  std::string text = TextIn(object, key);
  if (text.empty()) throw Error(Verdict::kInvalid, fmt::format("it has no {}", key));
  return text;
}

std::string UrlIn(const boost::json::object& object, const char* key, const char* otherwise) {
  std::string url = TextIn(object, key);
  if (url.empty()) url = otherwise;
  if (url.empty() || url.starts_with("http://") || url.starts_with("https://")) return url;
  throw Error(Verdict::kInvalid, fmt::format("its {} is no URL with http or https", key));
}

namespace {

constexpr std::size_t kLargestAnswer = 1 << 20;
constexpr double kLongestLife = 24 * 3600;

ApiRequest RequestFor(net::HttpCall call) {
  ApiRequest request;
  request.service = "tokens";
  request.name = "token";
  request.text = "the token of " + net::UrlForLog(call.url);
  call.max_bytes = kLargestAnswer;
  call.follows_redirects = false;
  request.call = std::move(call);
  request.may_be_sent_again = true;
  return request;
}

}  // namespace

Task<BearerSigner::Renew> BearerSigner::Sign(net::HttpCall& call) {
  std::shared_ptr<const BearerToken> token = co_await tokens_.Get();
  call.headers.emplace_back("Authorization", "Bearer " + token->text);
  co_return [this, token](const net::HttpReply&) { tokens_.Discard(token); };
}

Fault ReadTokenFault(int status, std::string_view body) {
  Fault fault;
  fault.verdict = status == 429 ? Verdict::kRateLimited : Verdict::kRetry;
  fault.refuses_signature = false;
  json::value parsed = ParsedJson(body.substr(0, kLargestAnswer));
  if (parsed.is_object()) {
    const json::object& answer = parsed.get_object();
    fault.code = Excerpt(TextIn(answer, "error"), 100);
    fault.text = OneLine(fault.code + ": " + TextIn(answer, "error_description"));
  } else {
    fault.text = FaultText(body);
  }
  if (status < 500) fault.text = WithRemedy(std::move(fault.text), "check the credentials of this provider");
  return fault;
}

net::HttpCall LocalCall(std::string url, Duration limit) {
  net::HttpCall call;
  call.url = std::move(url);
  call.uses_proxy = false;
  call.max_bytes = kLargestAnswer;
  call.timeouts = {limit, limit, limit, limit};
  return call;
}

TokenClient::TokenClient(Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http,
                         log::Logger logger, ApiClient::Options options,
                         std::function<bool(std::string_view)> means_wrong_time)
    : loop_(loop),
      means_wrong_time_(std::move(means_wrong_time)),
      clock_(loop, logger, options.cloud),
      client_(loop, pool, random, http, no_signer_, logger, WithFaults(std::move(options))) {}

// A refusal that has the form of the cloud's other services is read as theirs.
ApiClient::Options TokenClient::WithFaults(ApiClient::Options options) {
  options.read_refusal = [this, others = options.read_fault](const net::HttpReply& refusal) {
    json::value parsed = ParsedJson(std::string_view(refusal.body).substr(0, kLargestAnswer));
    bool is_of_others = ObjectIn(parsed, "error") != nullptr;
    Fault fault =
        is_of_others ? others(refusal.status, refusal.body) : ReadTokenFault(refusal.status, refusal.body);
    if (means_wrong_time_(fault.text)) clock_.CorrectAfter(refusal, "what was signed");
    return fault;
  };
  return options;
}

Task<BearerToken> TokenClient::Exchange(std::string url, Form form) {
  net::HttpCall call;
  call.url = std::move(url);
  call.method = "POST";
  call.headers = {{"Content-Type", "application/x-www-form-urlencoded"}};
  for (const auto& [name, value] : form) {
    call.body += (call.body.empty() ? "" : "&") + name + "=" + PercentEncoded(value);
  }
  ApiReply reply = co_await Send(std::move(call));
  co_return ReadToken(reply);
}

Task<ApiReply> TokenClient::Send(net::HttpCall call) { return client_.CallJson(RequestFor(std::move(call))); }

Task<BearerToken> TokenClient::Fetch(std::function<Task<BearerToken>()> fetch) {
  const Duration offset = clock_.offset();
  Outcome<BearerToken> token = co_await Attempt(fetch());
  bool was_clock_wrong = !token && clock_.offset() != offset;
  if (was_clock_wrong) token = co_await Attempt(fetch());
  if (FailedWith(token, Verdict::kInvalid)) throw Error(Verdict::kRetry, token.error().message());
  if (!token) token.error().Rethrow();
  co_return std::move(*token);
}

Task<BearerToken> TokenClient::OfMachine(std::string url, net::HttpHeaders headers, std::string otherwise) {
  constexpr Duration kLimit = std::chrono::seconds(5);
  net::HttpCall call = LocalCall(std::move(url), kLimit);
  call.headers = std::move(headers);
  Outcome<ApiReply> reply = co_await Attempt(Send(std::move(call)));
  if (reply) co_return ReadToken(*reply);
  throw Error(Verdict::kRetry, otherwise + ": " + reply.error().message());
}

Task<std::string> TokenClient::ReadSubject(SubjectSource source) {
  std::string text;
  if (source.file.empty()) {
    net::HttpCall call;
    call.url = source.url;
    call.headers = source.headers;
    net::HttpReply reply = co_await client_.Call(RequestFor(std::move(call)));
    text = Trim(reply.body);
  } else {
    text = ReadTextFile(source.file);
  }
  if (source.field.empty()) co_return text;
  json::value value = ParsedJson(text);
  std::string token = value.is_object() ? TextIn(value.get_object(), source.field) : "";
  if (!token.empty()) co_return token;
  throw Error(Verdict::kInvalid,
              fmt::format("the subject token's source has no {}: check credential_source", source.field));
}

BearerToken TokenClient::ReadToken(const ApiReply& reply, const TokenMembers& members) const {
  const json::object* answer = reply.body.if_object();
  BearerToken token;
  if (answer != nullptr) token.text = TextIn(*answer, members.text);
  // It becomes a header of calls.
  bool is_plain = std::ranges::all_of(token.text, [](char c) { return c > ' ' && c < '\x7f'; });
  if (token.text.empty() || !is_plain)
    throw Error(Verdict::kRetry, "the token service answered without a token");
  if (*members.end == '\0') {
    double seconds = std::clamp(NumberIn(*answer, members.lifetime), 0.0, kLongestLife);
    token.expires = loop_.Now() + std::chrono::seconds(static_cast<int>(seconds));
    return token;
  }
  std::optional<WallTime> end = ParseIso8601(TextIn(*answer, members.end));
  if (!end) throw Error(Verdict::kRetry, "the token service answered without the end of its token");
  token.expires = *end - clock_.offset();
  return token;
}

}  // namespace nodepool::driver::cloud::api
