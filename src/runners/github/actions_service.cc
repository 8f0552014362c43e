#include "runners/github/actions_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "async/backoff.h"
#include "base/crypto.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "net/http/curl.h"
#include "runners/github/jobs.h"

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

namespace {

namespace json = boost::json;

constexpr std::string_view kVersion = "api-version=6.0-preview";
constexpr std::string_view kSets = "runtime/runnerscalesets";
constexpr std::string_view kAgents = "distributedtask/pools/0/agents";
constexpr int kNothing = 202;
constexpr Duration kPollAnswer = std::chrono::seconds(75);
constexpr Duration kPollTotal = std::chrono::seconds(120);

// "https://github.com" of "https://github.com/octo".
std::string SiteOf(const std::string& url) {
  return url.substr(0, url.find('/', std::string_view("https://").size()));
}

std::string OrderText(const ScaleSetOrder& order) {
  json::array labels;
  for (const std::string& label : order.labels) labels.push_back({{"type", "System"}, {"name", label}});
  return json::serialize(json::object{{"name", order.name},
                                      {"runnerGroupId", order.group},
                                      {"labels", std::move(labels)},
                                      {"RunnerSetting", {{"disableUpdate", true}}}});
}

ScaleSet RequireSet(const json::value& answer) {
  std::optional<ScaleSet> set = ReadSet(answer);
  if (!set) throw Error(Verdict::kRetry, "GitHub's answer about a runner scale set has no id");
  return *set;
}

MessageSession RequireSession(const json::value& answer, std::int64_t set) {
  std::optional<MessageSession> session = ReadSession(answer);
  if (!session)
    throw Error(Verdict::kRetry, "GitHub's answer about a message session lacks its id, address or token");
  session->set = set;
  return *session;
}

std::string SetTarget(std::int64_t set, std::string_view more = "") {
  return fmt::format("{}/{}{}", kSets, set, more);
}

const json::array& ValuesIn(const json::value& answer) {
  static const json::array none;
  const json::array* values = ArrayIn(answer, "value");
  return values == nullptr ? none : *values;
}

net::HttpHeaders QueueHeaders(const MessageSession& session) {
  return {{"Authorization", "Bearer " + session.queue_token},
          {"Accept", fmt::format("application/json; {}", "api-version=6.0-preview")}};
}

// The queue's address with the message's number at the end of its path.
std::string MessageUrl(const std::string& queue_url, std::int64_t message) {
  std::size_t query = queue_url.find('?');
  std::string path = queue_url.substr(0, query);
  return fmt::format("{}/{}{}", path, message, query == std::string::npos ? "" : queue_url.substr(query));
}

std::string PollUrl(const std::string& queue_url, std::int64_t last) {
  if (last <= 0) return queue_url;
  return fmt::format("{}{}lastMessageId={}", queue_url, queue_url.find('?') == std::string::npos ? '?' : '&',
                     last);
}

}  // namespace

ActionsService::ActionsService(Loop& loop, Random& random, net::HttpClient& http, metrics::Metrics& metrics,
                               const config::RunnerService& service)
    : scope_(ScopeOf(service)),
      site_(SiteOf(scope_.url)),
      calls_(loop, random, http, metrics, OptionsFor(service)),
      login_(calls_, scope_, service.credentials),
      admin_(calls_, login_, scope_),
      repositories_(calls_.loop(), login_) {}

Task<net::HttpReply> ActionsService::SendOnce(const Request& request, Admin admin) {
  char separator = request.target.find('?') == std::string::npos ? '?' : '&';
  net::HttpCall call{
      .method = request.method,
      .url = fmt::format("{}/_apis/{}{}{}", admin.base, request.target, separator, kVersion),
      .headers = {{"Authorization", "Bearer " + admin.token}, {"Content-Type", "application/json"}},
      .body = request.body,
      .may_be_repeated = request.may_be_repeated};
  co_return co_await calls_.Send(request.kind, std::move(call));
}

Task<net::HttpReply> ActionsService::Send(Request request) {
  Admin admin = co_await admin_.Get();
  Outcome<net::HttpReply> reply = co_await Attempt(SendOnce(request, std::move(admin)));
  if (reply) co_return std::move(*reply);
  if (!IsRefusedWith(reply.error(), kUnauthorized)) reply.error().Rethrow();
  admin_.Discard();
  Admin renewed = co_await admin_.Get();
  co_return co_await SendOnce(request, std::move(renewed));
}

Task<json::value> ActionsService::SendForJson(Request request) {
  std::string_view kind = request.kind;
  net::HttpReply reply = co_await Send(std::move(request));
  co_return ReadJson(kind, reply);
}

Task<std::int64_t> ActionsService::GroupId(std::string name) {
  if (name.empty() || Lower(name) == "default") co_return kDefaultGroup;
  Request request{.kind = "group",
                  .method = "GET",
                  .target = "runtime/runnergroups/?groupName=" + net::PercentEncoded(name)};
  json::value answer = co_await SendForJson(std::move(request));
  for (const json::value& group : ValuesIn(answer)) {
    const json::object* object = group.if_object();
    if (object != nullptr && TextIn(*object, "name") == name) co_return WholeIn(*object, "id");
  }
  throw Error(Verdict::kInvalid,
              fmt::format("GitHub has no runner group {} that this address may use: make it, or "
                          "correct group",
                          Excerpt(name)));
}

Task<std::optional<ScaleSet>> ActionsService::FindSet(std::string name, std::int64_t group) {
  Request request{
      .kind = "set",
      .method = "GET",
      .target = fmt::format("{}?runnerGroupId={}&name={}", kSets, group, net::PercentEncoded(name))};
  json::value answer = co_await SendForJson(std::move(request));
  for (const json::value& entry : ValuesIn(answer)) {
    std::optional<ScaleSet> set = ReadSet(entry);
    if (set && Lower(TextIn(entry.get_object(), "name")) == Lower(name)) co_return set;
  }
  co_return std::nullopt;
}

Task<ScaleSet> ActionsService::MakeSet(ScaleSetOrder order) {
  Request request{.kind = "set",
                  .method = "POST",
                  .target = std::string(kSets),
                  .body = OrderText(order),
                  .may_be_repeated = false};
  json::value answer = co_await SendForJson(std::move(request));
  co_return RequireSet(answer);
}

Task<ScaleSet> ActionsService::ChangeSet(std::int64_t id, ScaleSetOrder order) {
  Request request{.kind = "set", .method = "PATCH", .target = SetTarget(id), .body = OrderText(order)};
  json::value answer = co_await SendForJson(std::move(request));
  co_return RequireSet(answer);
}

Task<> ActionsService::DeleteSet(std::int64_t id) {
  Request request{.kind = "set", .method = "DELETE", .target = SetTarget(id)};
  co_await IsFound(Send(std::move(request)));
}

Task<MessageSession> ActionsService::OpenSession(std::int64_t set, std::string owner) {
  Request request{.kind = "session",
                  .method = "POST",
                  .target = SetTarget(set, "/sessions"),
                  .body = json::serialize(json::object{{"ownerName", owner}}),
                  .may_be_repeated = false};
  json::value answer = co_await SendForJson(std::move(request));
  co_return RequireSession(answer, set);
}

Task<> ActionsService::CloseSession(std::int64_t set, std::string session) {
  Request request{.kind = "session",
                  .method = "DELETE",
                  .target = SetTarget(set, "/sessions/" + net::PercentEncoded(session))};
  co_await IsFound(Send(std::move(request)));
}

Task<> ActionsService::RenewToken(MessageSession& session) {
  Request request{.kind = "session",
                  .method = "PATCH",
                  .target = SetTarget(session.set, "/sessions/" + net::PercentEncoded(session.id))};
  json::value answer = co_await SendForJson(std::move(request));
  session = RequireSession(answer, session.set);
}

Task<net::HttpReply> ActionsService::SendForSession(
    std::string_view kind, MessageSession& session,
    std::function<net::HttpCall(const MessageSession&)> make) {
  Outcome<net::HttpReply> reply = co_await Attempt(calls_.Send(kind, make(session)));
  if (reply) co_return std::move(*reply);
  if (!IsRefusedWith(reply.error(), kUnauthorized)) reply.error().Rethrow();
  co_await RenewToken(session);
  co_return co_await calls_.Send(kind, make(session));
}

Task<std::optional<MessageBatch>> ActionsService::NextBatch(MessageSession& session, std::int64_t last,
                                                            std::int64_t capacity) {
  auto make = [last, capacity](const MessageSession& current) {
    net::HttpCall call{.url = PollUrl(current.queue_url, last), .headers = QueueHeaders(current)};
    call.headers.emplace_back("X-ScaleSetMaxCapacity", std::to_string(capacity));
    call.timeouts = {.answer = kPollAnswer, .stall = kPollAnswer, .total = kPollTotal};
    return call;
  };
  net::HttpReply reply = co_await SendForSession("message", session, make);
  if (reply.status == kNothing) co_return std::nullopt;
  json::value answer = ReadJson("a message of the queue", reply);
  std::optional<MessageBatch> batch = ReadBatch(answer, site_);
  if (!batch) throw Error(Verdict::kRetry, "GitHub's message has no id");
  co_return batch;
}

Task<> ActionsService::Acknowledge(MessageSession& session, std::int64_t batch) {
  auto make = [batch](const MessageSession& current) {
    return net::HttpCall{
        .method = "DELETE", .url = MessageUrl(current.queue_url, batch), .headers = QueueHeaders(current)};
  };
  co_await IsFound(SendForSession("acknowledge", session, make));
}

Task<std::vector<std::int64_t>> ActionsService::Acquire(MessageSession& session,
                                                        std::vector<std::int64_t> requests) {
  Admin admin = co_await admin_.Get();
  std::string url =
      fmt::format("{}/_apis/{}?{}", admin.base, SetTarget(session.set, "/acquirejobs"), kVersion);
  std::string body = json::serialize(json::array(requests.begin(), requests.end()));
  auto make = [&](const MessageSession& current) {
    return net::HttpCall{
        .method = "POST",
        .url = url,
        .headers = {{"Authorization", "Bearer " + current.queue_token}, {"Content-Type", "application/json"}},
        .body = body,
        .may_be_repeated = true};
  };
  net::HttpReply reply = co_await SendForSession("acquire", session, make);
  json::value answer = ReadJson("the acquired jobs", reply);
  std::vector<std::int64_t> acquired;
  for (const json::value& id : ValuesIn(answer)) {
    if (const std::int64_t* number = id.if_int64()) acquired.push_back(*number);
  }
  co_return acquired;
}

Task<Registration> ActionsService::Register(RunnerOrder order) {
  Gate::Pass pass = co_await registrations_.Enter();
  Request request{.kind = "jit-config",
                  .method = "POST",
                  .target = SetTarget(order.set, "/generatejitconfig"),
                  .body = json::serialize(json::object{{"name", order.name}, {"workFolder", "_work"}}),
                  .may_be_repeated = false};
  json::value answer = co_await SendForJson(std::move(request));
  co_return ReadRegistration(answer, "encodedJITConfig");
}

Task<std::vector<RegisteredRunner>> ActionsService::Runners(std::string query) {
  Request request{.kind = "agent", .method = "GET", .target = std::string(kAgents) + query};
  json::value answer = co_await SendForJson(std::move(request));
  std::vector<RegisteredRunner> runners;
  for (const json::value& entry : ValuesIn(answer)) {
    if (std::optional<RegisteredRunner> runner = ReadRunner(entry)) runners.push_back(std::move(*runner));
  }
  co_return runners;
}

Task<std::optional<RegisteredRunner>> ActionsService::FindRunner(std::string name) {
  std::vector<RegisteredRunner> runners = co_await Runners("?agentName=" + net::PercentEncoded(name));
  for (RegisteredRunner& runner : runners) {
    if (Lower(runner.name) == Lower(name)) co_return std::move(runner);
  }
  co_return std::nullopt;
}

Task<std::vector<RegisteredRunner>> ActionsService::ListRunners() { return Runners(""); }

Task<bool> ActionsService::IsPublic(std::string repository) {
  return repositories_.IsPublic(std::move(repository));
}

Task<std::string> ActionsService::NewestVersion() { return repositories_.NewestRunner(scope_.actions); }

Task<bool> ActionsService::HasRunner(std::int64_t id) {
  Request request{.kind = "agent", .method = "GET", .target = fmt::format("{}/{}", kAgents, id)};
  co_return co_await IsFound(Send(std::move(request)));
}

Task<Removal> ActionsService::RemoveRunner(std::int64_t id) {
  Request request{.kind = "agent", .method = "DELETE", .target = fmt::format("{}/{}", kAgents, id)};
  Outcome<net::HttpReply> reply = co_await Attempt(Send(std::move(request)));
  if (reply) co_return Removal::kRemoved;
  if (FailedWith(reply, Verdict::kNotFound)) co_return Removal::kGone;
  const ServiceError* refusal = RefusalIn(reply.error());
  if (refusal != nullptr && refusal->Is("JobStillRunningException")) co_return Removal::kBusy;
  reply.error().Rethrow();
}

}  // namespace nodepool::runners::github
