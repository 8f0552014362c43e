#include "web/access/access.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "web/router.h"

namespace nodepool::web {
namespace {

constexpr std::string_view kScheme = "bearer ";
constexpr std::string_view kRunnerHooks = "/api/v1/runners/hooks/";  // signed in place of a token
constexpr const char* kNoTokens =
    "Nobody may change anything here: there are no tokens. `nodepool token NAME --scope request` makes one.";

// The text of the token; empty: there is none.
std::string TokenIn(const Request& request) {
  const std::string& header = request.Header("authorization");
  if (!Lower(header.substr(0, kScheme.size())).starts_with(kScheme)) return "";
  return std::string(Trim(std::string_view(header).substr(kScheme.size())));
}

Response Unauthorized(const Request& request, std::string message) {
  Response response = ErrorResponse(request, 401, std::move(message));
  response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

Task<Response> AnswerOrRefuse(Access& access, const Router& next, Request request) {
  if (!access.IsOpen(request)) {
    std::expected<Caller, Response> caller = co_await access.Identify(request);
    if (!caller) co_return std::move(caller.error());
  }
  co_return co_await next.Answer(std::move(request));
}

Task<Response> Guarded(Access& access, const Router& next, Request request) {
  Task<Response> answer = AnswerOrRefuse(access, next, std::move(request));
  Response response = co_await std::move(answer);
  auto has_name = [](std::string_view name) {
    return [name](const auto& each) { return each.first == name; };
  };
  if (std::ranges::none_of(response.headers, has_name("X-Content-Type-Options")))
    response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  if (access.reading_needs_token()) std::erase_if(response.headers, has_name("Access-Control-Allow-Origin"));
  co_return response;
}

}  // namespace

Access::Access(Loop& loop, TokenVerifier::Match match)
    : verifier_(loop, std::move(match)), logger_("nodepool.audit") {}

void Access::Configure(const config::Config& config) {
  verifier_.Configure(config.web_tokens);
  read_needs_token_ = config.webapp.read_needs_token;
  changes_.Notify();
}

std::optional<Caller> Access::Renewed(const Caller& caller) const {
  TokenVerifier::Token token = verifier_.Current(*caller.token);
  return token ? std::optional(Caller{token, caller.address}) : std::nullopt;
}

bool Access::IsOfThisHost(const Request& request) const {
  return trusts_this_host_ && request.is_from_this_host && IsOfOwnOrigin(request);
}

bool Access::IsOpen(const Request& request) const {
  bool is_delivery = request.method == "POST" && request.path.starts_with(kRunnerHooks);
  return !read_needs_token_ || request.path == "/ready" || is_delivery || IsOfThisHost(request);
}

Task<std::expected<Caller, Response>> Access::Identify(const Request& request) {
  if (!verifier_.has_tokens()) co_return std::unexpected(ErrorResponse(request, 403, kNoTokens));
  std::string text = TokenIn(request);
  if (text.empty())
    co_return std::unexpected(Unauthorized(request, "A token is needed: Authorization: Bearer NAME.SECRET"));
  TokenVerifier::Verdict verdict = co_await verifier_.Verify(text, request.peer);
  if (verdict.token) {
    request.prove(verdict.token->name);
    co_return Caller{verdict.token, request.peer};
  }
  co_return std::unexpected(Refuse(request, verdict, text));
}

Response Access::Refuse(const Request& request, const TokenVerifier::Verdict& verdict,
                        const std::string& text) const {
  if (verdict.pause > Duration::zero()) {
    Response response = ErrorResponse(request, 429, "Too many attempts with a wrong token; try again later.");
    auto seconds = std::chrono::ceil<std::chrono::seconds>(verdict.pause).count();
    response.headers.emplace_back("Retry-After", std::to_string(seconds));
    return response;
  }
  request.prove("");
  std::string name = text.substr(0, text.find('.'));
  bool is_known = verifier_.Knows(name);  // else it may be a secret in the wrong place
  logger_.Info("{} from {}: a token was refused", is_known ? name : "?", request.peer);
  return Unauthorized(request, "The token is wrong.");
}

void Access::Audit(const Caller& caller, const std::string& what) const {
  logger_.Info("{} from {}: {}", caller.name(), caller.address, what);
}

Endpoint::Handler GuardReading(Access& access, const Router& next) {
  return [&access, &next](Request request) { return Guarded(access, next, std::move(request)); };
}

}  // namespace nodepool::web
