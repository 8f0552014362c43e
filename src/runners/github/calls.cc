#include "runners/github/calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <fstream>
#include <sstream>
#include <vector>

#include "async/task.h"
#include "base/crypto.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "base/version.h"
#include "net/http/curl.h"
#include "runners/context.h"
#include "runners/metrics.h"

namespace nodepool::runners::github {

namespace {

constexpr std::size_t kShownRefusal = 300;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr Duration kLongestPause = std::chrono::hours(2);

std::string_view WithoutMark(std::string_view body) {
  if (body.starts_with(kByteOrderMark)) body.remove_prefix(kByteOrderMark.size());
  return body;
}

boost::json::value Parsed(std::string_view body) {
  boost::system::error_code error;
  boost::json::value value = boost::json::parse(WithoutMark(body), error);
  return error ? boost::json::value() : value;
}

std::optional<std::int64_t> WholeNumber(const std::string& text) {
  std::int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || text.empty() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Duration Bounded(std::int64_t seconds) {
  return std::chrono::seconds(std::clamp<std::int64_t>(
      seconds, 1, std::chrono::duration_cast<std::chrono::seconds>(kLongestPause).count()));
}

Verdict VerdictOfStatus(int status) {
  switch (status) {
    case 404:
      return Verdict::kNotFound;
    case 409:
      return Verdict::kConflict;
    case kTooMany:
      return Verdict::kRateLimited;
    case kUnauthorized:
    case kForbidden:
    case 408:
      return Verdict::kRetry;
    default:
      return status >= 500 ? Verdict::kRetry : Verdict::kInvalid;
  }
}

std::string IdsOf(const net::HttpReply& reply) {
  std::string ids;
  for (const char* header : {"activityid", "x-github-request-id"}) {
    const std::string& id = reply.Header(header);
    if (!id.empty()) ids += fmt::format(", {} {}", header, Excerpt(id));
  }
  return ids;
}

}  // namespace

bool ServiceError::Is(std::string_view name) const {
  std::size_t found = exception_.find(name);
  if (found == exception_.npos) return false;
  bool begins = found == 0 || exception_[found - 1] == '.';
  std::size_t end = found + name.size();
  return begins && (end == exception_.size() || exception_[end] == ',' || exception_[end] == ' ');
}

const ServiceError* RefusalIn(const Failure& failure) {
  try {
    std::rethrow_exception(failure.exception());
  } catch (const ServiceError& error) {
    return &error;  // the failure owns it
  } catch (...) {
    return nullptr;
  }
}

bool IsRefusedWith(const Failure& failure, int status) {
  const ServiceError* refusal = RefusalIn(failure);
  return refusal != nullptr && refusal->status() == status;
}

Refusal ReadRefusal(const net::HttpReply& reply) {
  boost::json::value body = Parsed(reply.body);
  if (const auto* object = body.if_object()) {
    return {TextIn(*object, "typeName"), Excerpt(TextIn(*object, "message"), kShownRefusal)};
  }
  std::string_view text = Trim(WithoutMark(reply.body));
  bool is_html = text.starts_with('<') || reply.Header("content-type").find("html") != std::string::npos;
  return {"", is_html ? "an answer in HTML, perhaps of a proxy" : Excerpt(text, kShownRefusal)};
}

std::optional<Duration> AskedPause(const net::HttpReply& reply, WallTime now) {
  if (reply.status != kForbidden && reply.status != kTooMany) return std::nullopt;
  if (auto seconds = WholeNumber(reply.Header("retry-after"))) return Bounded(*seconds);
  if (reply.Header("x-ratelimit-remaining") == "0") {
    auto reset = WholeNumber(reply.Header("x-ratelimit-reset"));
    return Bounded(reset ? *reset - static_cast<std::int64_t>(ToSeconds(now)) + 1 : 60);
  }
  if (reply.status == kTooMany) return std::chrono::minutes(1);
  return std::nullopt;
}

ServiceError ErrorOf(std::string_view call, const net::HttpReply& reply) {
  Refusal refusal = ReadRefusal(reply);
  std::string message = refusal.message.empty() ? "" : ": " + refusal.message;
  return {VerdictOfStatus(reply.status),
          fmt::format("{}: status {}{}{}", call, reply.status, message, IdsOf(reply)), reply.status,
          std::move(refusal.exception)};
}

boost::json::value ReadJson(std::string_view call, const net::HttpReply& reply) {
  boost::json::value value = Parsed(reply.body);
  if (value.is_null())
    throw Error(Verdict::kRetry,
                fmt::format("{}: the answer with status {} is not JSON{}", call, reply.status, IdsOf(reply)));
  return value;
}

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

namespace {

constexpr Duration kBeforeEnd = std::chrono::minutes(5);
constexpr Duration kTokenLasts = std::chrono::hours(1);  // as GitHub documents
constexpr std::size_t kMaxKey = 64 * 1024;

std::string ReadKey(const std::string& text_or_path) {
  if (text_or_path.starts_with("-----BEGIN")) return text_or_path;
  std::ifstream file(text_or_path);
  std::string text(kMaxKey, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.empty())
    throw Error(Verdict::kInvalid, fmt::format("app-private-key: {} cannot be read", text_or_path));
  return text;
}

RsaKey ParseKey(const std::string& text_or_path) {
  Expected<RsaKey> key = RsaKey::Parse(ReadKey(text_or_path));
  if (!key) throw key.error().In("app-private-key");
  return *key;
}

net::HttpHeaders RestHeaders(const std::string& token) {
  return {{"Authorization", "Bearer " + token}, {"Accept", "application/vnd.github+json"}};
}

constexpr std::string_view kScheme = "https://";
constexpr std::string_view kDefaultPort = ":443";
constexpr std::string_view kOwnCloud = ".ghe.com";

std::string ApiOf(const std::string& host) {
  std::string name = Lower(host);
  if (name == "github.com" || name == "www.github.com") return "https://api.github.com";
  if (name.ends_with(kOwnCloud) && name.find(':') == name.npos) return fmt::format("https://api.{}", name);
  return fmt::format("https://{}/api/v3", host);
}

}  // namespace

Expected<Scope> ReadConfigUrl(const std::string& url) {
  if (!url.starts_with(kScheme))
    return Unexpected(Verdict::kInvalid, "the address does not begin with https://");
  std::vector<std::string> parts = Split(std::string_view(url).substr(kScheme.size()), '/');
  if (parts.size() < 2 || parts.size() > 3 || parts[0].empty())
    return Unexpected(
        Verdict::kInvalid,
        fmt::format("{} is not the address of an organization, repository or enterprise", Excerpt(url)));
  std::string host = parts[0];
  if (host.ends_with(kDefaultPort)) host.resize(host.size() - kDefaultPort.size());
  Scope scope{.api = ApiOf(host)};
  scope.url = fmt::format("https://{}/{}{}", host, parts[1], parts.size() == 3 ? "/" + parts[2] : "");
  std::string first = net::PercentEncoded(parts[1]);
  if (parts.size() == 2) {
    scope.actions = fmt::format("/orgs/{}/actions", first);
  } else if (Lower(parts[1]) == "enterprises") {
    scope.kind = Scope::Kind::kEnterprise;
    scope.actions = fmt::format("/enterprises/{}/actions", net::PercentEncoded(parts[2]));
  } else {
    scope.kind = Scope::Kind::kRepository;
    scope.actions = fmt::format("/repos/{}/{}/actions", first, net::PercentEncoded(parts[2]));
  }
  return scope;
}

Scope ScopeOf(const config::RunnerService& service) {
  Expected<Scope> scope = ReadConfigUrl(service.url);
  if (!scope) throw scope.error().In("service " + service.name);
  return *scope;
}

std::string AppClaims(const std::string& client_id, WallTime now) {
  constexpr std::int64_t kBack = 60;
  constexpr std::int64_t kLasts = 9 * 60;
  std::int64_t begins = static_cast<std::int64_t>(ToSeconds(now)) - kBack;
  boost::json::object claims{{"iss", client_id}, {"iat", begins}, {"exp", begins + kLasts}};
  return boost::json::serialize(claims);
}

Login::Login(Calls& calls, Scope scope, config::RunnerCredentials credentials)
    : calls_(calls), scope_(std::move(scope)), credentials_(std::move(credentials)) {}

Task<std::string> Login::Token() {
  if (credentials_.empty())
    throw Error(Verdict::kInvalid,
                "the secure file has no entry of runner-services with this service's name");
  if (!credentials_.is_app()) co_return credentials_.token;
  Gate::Pass pass = co_await gate_.Enter();
  if (!token_.empty() && calls_.loop().SteadyNow() < good_until_) co_return token_;
  co_return co_await NewToken();
}

Task<std::string> Login::NewToken() {
  RsaKey key = ParseKey(credentials_.app_private_key);
  net::HttpCall call{
      .method = "POST",
      .url =
          fmt::format("{}/app/installations/{}/access_tokens", scope_.api, credentials_.app_installation_id),
      .headers = RestHeaders(SignedToken(key, AppClaims(credentials_.app_client_id, calls_.loop().Now()))),
      .may_be_repeated = true};
  SteadyTime asked = calls_.loop().SteadyNow();
  net::HttpReply reply = co_await calls_.Send("installation-token", std::move(call));
  boost::json::value body = ReadJson("the installation's token", reply);
  token_ = body.is_object() ? TextIn(body.get_object(), "token") : "";
  if (token_.empty()) throw Error(Verdict::kRetry, "GitHub's answer to the app has no token");
  good_until_ = asked + kTokenLasts - kBeforeEnd;
  co_return token_;
}

void Login::Discard() { token_.clear(); }

Task<net::HttpReply> Login::SendOnce(const RestCall& call, std::string token) {
  net::HttpCall sent{.method = call.method,
                     .url = scope_.api + call.target,
                     .headers = RestHeaders(token),
                     .body = call.body};
  if (!call.body.empty()) sent.headers.emplace_back("Content-Type", "application/json");
  if (!call.etag.empty()) sent.headers.emplace_back("If-None-Match", call.etag);
  co_return co_await calls_.Send(call.kind, std::move(sent));
}

Task<net::HttpReply> Login::Send(RestCall call) {
  std::string token = co_await Token();
  Outcome<net::HttpReply> reply = co_await Attempt(SendOnce(call, std::move(token)));
  if (reply) co_return std::move(*reply);
  if (!IsRefusedWith(reply.error(), kUnauthorized)) reply.error().Rethrow();
  Discard();
  std::string renewed = co_await Token();
  co_return co_await SendOnce(call, std::move(renewed));
}

}  // namespace nodepool::runners::github
