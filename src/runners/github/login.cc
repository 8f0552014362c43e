#include "runners/github/login.h"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <fstream>
#include <sstream>
#include <vector>

#include "async/attempt.h"
#include "base/json_fields.h"
#include "base/rsa_key.h"
#include "base/text.h"
#include "net/http/url.h"

namespace nodepool::runners::github {
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
