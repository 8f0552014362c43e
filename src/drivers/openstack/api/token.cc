#include "drivers/openstack/api/token.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>
#include <ctime>

#include "base/json_fields.h"
#include "base/time_text.h"
#include "drivers/openstack/api/session.h"
#include "drivers/openstack/api/versions.h"
#include "drivers/openstack/config/credentials.h"

namespace nodepool::drivers::openstack {

namespace json = boost::json;

namespace {

constexpr std::size_t kMaxTokenBytes = 4 << 20;

}  // namespace

net::HttpCall NewCall(const CloudConfig& cloud, std::string method, std::string url) {
  net::HttpCall call;
  call.method = std::move(method);
  call.url = std::move(url);
  call.headers.emplace_back("Accept", "application/json");
  call.tls = std::make_shared<const net::TlsSettings>(cloud.tls);
  if (cloud.api_timeout) {
    call.timeouts.connect = *cloud.api_timeout;
    call.timeouts.answer = *cloud.api_timeout;
    call.timeouts.stall = *cloud.api_timeout;
  }
  return call;
}

Token ReadToken(const net::HttpReply& reply, std::string_view where) {
  boost::system::error_code error;
  json::value body = json::parse(reply.body, error);
  const json::object* content = error ? nullptr : ObjectIn(body, "token");
  Token token;
  token.text = reply.Header("x-subject-token");
  if (content == nullptr || token.text.empty()) {
    throw Error(Verdict::kRetry, fmt::format("{}: the answer, {}, contains no token", where, reply.status));
  }
  auto expires = ParseIso8601(TextIn(*content, "expires_at"));
  if (!expires)
    throw Error(Verdict::kRetry, fmt::format("{}: the answer contains a token without expiry", where));
  token.expires = *expires;
  if (const json::object* project = ObjectIn(*content, "project")) token.project_id = TextIn(*project, "id");
  if (const json::array* catalog = ArrayIn(*content, "catalog")) token.catalog = *catalog;
  return token;
}

TokenSource::TokenSource(Loop& loop, net::HttpClient& http, const CloudConfig& cloud)
    : http_(http), cloud_(cloud), tokens_(loop, [this] { return Fetch(); }) {}

Task<TokenSource::Renew> TokenSource::Sign(net::HttpCall& call) {
  std::shared_ptr<const Token> token = co_await tokens_.Get();
  if (token->text.empty()) co_return nullptr;
  call.headers.emplace_back("X-Auth-Token", token->text);
  co_return [this, token](const net::HttpReply&) { tokens_.Discard(token); };
}

Task<Token> TokenSource::Fetch() {
  if (cloud_.credentials.type == "none") co_return Token();
  std::string url = co_await TokenUrl();
  net::HttpCall call = NewCall(cloud_, "POST", url + "/auth/tokens");
  call.max_bytes = kMaxTokenBytes;
  call.may_be_repeated = true;  // a token that nobody uses ends by itself
  call.headers.emplace_back("Content-Type", "application/json");
  if (cloud_.credentials.type == "token") {
    call.headers.emplace_back("X-Auth-Token", cloud_.credentials.Get("token"));
  }
  call.body = json::serialize(TokenRequest(cloud_.credentials));
  net::HttpReply reply = co_await Send(std::move(call));
  std::string where = fmt::format("cloud {}: logging in at {}", cloud_.name, net::UrlForLog(url));
  if (reply.status >= 400) throw MakeApiError(where, reply.status, ReadFault(reply.status, reply.body));
  Token token = ReadToken(reply, where);
  logger_.Debug("Logged in to cloud {}", cloud_.name);
  co_return token;
}

// HttpError names the call; this adds what it was for.
Task<net::HttpReply> TokenSource::Send(net::HttpCall call) {
  Outcome<net::HttpReply> reply = co_await Attempt(http_.Send(std::move(call)));
  if (reply) co_return std::move(*reply);
  throw Error(reply.error().verdict(),
              fmt::format("cloud {}: logging in: {}", cloud_.name, reply.error().message()));
}

Task<std::string> TokenSource::TokenUrl() {
  if (url_.empty()) {
    std::string configured = cloud_.credentials.Get("auth_url");
    while (configured.ends_with('/')) configured.pop_back();
    if (!configured.ends_with("/v3")) configured = co_await DiscoverUrl();
    url_ = configured;
  }
  co_return url_;
}

// The URL of the supported version, if the configured address names none.
Task<std::string> TokenSource::DiscoverUrl() {
  std::string url = cloud_.credentials.Get("auth_url");
  net::HttpCall call = NewCall(cloud_, "GET", url);
  call.max_bytes = kMaxTokenBytes;
  net::HttpReply reply = co_await Send(std::move(call));
  while (url.ends_with('/')) url.pop_back();
  std::vector<Version> versions = ReadVersions(reply.body);
  if (versions.empty()) co_return url + "/v3";
  const Version* best = BestVersion(versions, 3);
  if (best == nullptr) {
    throw Error(Verdict::kInvalid,
                fmt::format("cloud {}: {} does not speak version 3 of the identity service", cloud_.name,
                            net::UrlForLog(url)));
  }
  co_return VersionUrl(url, *best, "/v3");
}

}  // namespace nodepool::drivers::openstack
