#include "web/access/access.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/crypto.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "net/http/connection.h"
#include "web/router.h"

namespace nodepool::web {

namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(250);
constexpr Duration kLongestPause = std::chrono::seconds(30);
constexpr Duration kMemory = std::chrono::minutes(10);
constexpr int kMaxDoublings = 7;

Duration PauseAfter(int failures) {
  return std::min(kLongestPause, kFirstPause * (1 << std::min(failures - 1, kMaxDoublings)));
}

}  // namespace

Duration Attempts::PauseOf(const std::string& key, SteadyTime now) const {
  auto known = failures_.find(key);
  if (known == failures_.end() || now - known->second.last > kMemory) return Duration::zero();
  return std::max(Duration::zero(), known->second.last + PauseAfter(known->second.count) - now);
}

void Attempts::Failed(const std::string& key, SteadyTime now) {
  DropOld(now);
  auto [entry, is_new] = failures_.try_emplace(key);
  if (is_new) order_.push_back(key);
  ++entry->second.count;
  entry->second.last = now;
}

// What failed lately but is among the oldest keys stays, unless there are too many.
void Attempts::DropOld(SteadyTime now) {
  while (!order_.empty()) {
    auto oldest = failures_.find(order_.front());
    bool is_recent = now - oldest->second.last <= kMemory;
    if (is_recent && failures_.size() < kMaxKeys) return;
    failures_.erase(oldest);
    order_.pop_front();
  }
}

namespace {

constexpr int kMaxRunning = 2;
constexpr std::size_t kMaxProofs = 10'000;
constexpr std::size_t kMaxTokenText = 256;
constexpr std::size_t kKeyBytes = 32;

Task<bool> MatchOn(BlockingPool& pool, std::string secret, std::string hash) {
  auto work = [secret, hash] { return MatchesHash(secret, hash); };
  bool matches = co_await OnBlockingPool(pool, work);
  co_return matches;
}

std::string TokenNameIn(const std::string& text) {
  std::string name = text.substr(0, text.find('.'));
  return config::IsTokenName(name) && text.size() <= kMaxTokenText ? name : "";
}

std::string SecretIn(const std::string& text, const std::string& name) {
  return text.substr(std::min(text.size(), name.size() + 1));
}

}  // namespace

TokenVerifier::TokenVerifier(Loop& loop, Match match)
    : loop_(loop), match_(std::move(match)), digest_key_(SecretBytes(kKeyBytes)), running_(kMaxRunning) {}

void TokenVerifier::Configure(const std::vector<config::WebToken>& tokens) {
  tokens_.clear();
  for (const config::WebToken& token : tokens)
    tokens_.emplace(token.name, std::make_shared<const config::WebToken>(token));
}

TokenVerifier::Token TokenVerifier::TokenWith(const std::string& name, const std::string& hash) const {
  auto entry = tokens_.find(name);
  return entry != tokens_.end() && entry->second->hash == hash ? entry->second : nullptr;
}

// A token that was withdrawn is no guess: its clients may try it again and again beside others of their
// network.
std::optional<TokenVerifier::Token> TokenVerifier::Known(const std::string& text) const {
  auto found = proofs_.find(KeyedDigest(digest_key_, text));
  if (found == proofs_.end()) return std::nullopt;
  const Proof& proof = found->second;
  auto configured = tokens_.find(proof.name);
  if (configured == tokens_.end()) return nullptr;
  const std::string& hash = configured->second->hash;
  if (hash == proof.hash) return configured->second;
  return hash == proof.other_hash ? std::optional<Token>(nullptr) : std::nullopt;
}

Task<TokenVerifier::Verdict> TokenVerifier::Verify(std::string text, std::string address) {
  if (std::optional<Token> known = Known(text)) co_return Verdict{*known};
  std::string network = net::NetworkOf(address);
  Duration pause = attempts_.PauseOf(network, loop_.SteadyNow());
  if (pause > Duration::zero()) co_return Verdict{nullptr, pause};
  std::string name = TokenNameIn(text);
  auto configured = tokens_.find(name);
  if (configured == tokens_.end()) co_return Judge(false, text, {}, network);
  Proof claim{name, configured->second->hash};
  if (IsQuickHash(claim.hash)) {
    bool matches = MatchesHash(SecretIn(text, name), claim.hash);
    co_return Judge(matches, text, claim, network);
  }
  Task<Verdict> turn = VerifyInTurn(std::move(text), std::move(claim), std::move(network));
  Verdict verdict = co_await std::move(turn);
  co_return verdict;
}

// Digests are random, so any proof may go when there are too many; what is still good is verified again.
TokenVerifier::Verdict TokenVerifier::Judge(bool matches, const std::string& text, const Proof& claim,
                                            const std::string& network) {
  std::string digest = KeyedDigest(digest_key_, text);
  auto former = proofs_.find(digest);
  if (!matches && former == proofs_.end()) {
    attempts_.Failed(network, loop_.SteadyNow());
  } else if (!matches) {
    former->second.other_hash = claim.hash;
  } else {
    if (proofs_.size() >= kMaxProofs) proofs_.erase(proofs_.begin());
    proofs_.insert_or_assign(digest, claim);
  }
  return Verdict{matches ? TokenWith(claim.name, claim.hash) : nullptr};
}

// The clients of a network wait for each other, so that a stranger has one attempt at a time. What was found
// out meanwhile counts: the token may be known now, or the network may have to pause.
Task<TokenVerifier::Verdict> TokenVerifier::VerifyInTurn(std::string text, Proof claim, std::string network) {
  std::shared_ptr<Gate> gate = networks_[network].lock();
  if (!gate) networks_[network] = gate = std::make_shared<Gate>(1);
  ScopeExit left([&] {
    if (gate.use_count() == 1) networks_.erase(network);
  });
  Gate::Pass pass = co_await gate->Enter();
  if (std::optional<Token> known = Known(text)) co_return Verdict{*known};
  Duration pause = attempts_.PauseOf(network, loop_.SteadyNow());
  if (pause > Duration::zero()) co_return Verdict{nullptr, pause};
  Task<bool> matching = Matches(SecretIn(text, claim.name), claim.hash);
  bool matches = co_await std::move(matching);
  co_return Judge(matches, text, claim, network);
}

Task<bool> TokenVerifier::Matches(std::string secret, std::string hash) {
  Gate::Pass pass = co_await running_.Enter();
  Task<bool> matching = match_(std::move(secret), std::move(hash));
  bool matches = co_await std::move(matching);
  co_return matches;
}

TokenVerifier::Match MatchOnPool(BlockingPool& pool) {
  return [&pool](std::string secret, std::string hash) {
    return MatchOn(pool, std::move(secret), std::move(hash));
  };
}

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
