#include "web/access/token_verifier.h"

#include <algorithm>

#include "base/digest.h"
#include "base/password_hash.h"
#include "base/scope_exit.h"

namespace nodepool::web {
namespace {

constexpr std::size_t kMaxRunning = 2;
constexpr std::size_t kMaxWaiting = 32;
constexpr std::size_t kMaxWaitingOfNetwork = 32;
constexpr std::size_t kMaxTokenText = 256;
constexpr std::size_t kKeyBytes = 32;
// For unknown names: has the usual costs, and no secret.
constexpr const char* kHashOfNothing =
    "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

Task<bool> MatchOn(BlockingPool& pool, std::string secret, std::string hash) {
  auto work = [secret, hash] { return MatchesHash(secret, hash); };
  bool matches = co_await OnBlockingPool(pool, work);
  co_return matches;
}

}  // namespace

TokenVerifier::TokenVerifier(Loop& loop, Match match)
    : loop_(loop), match_(std::move(match)), digest_key_(SecretBytes(kKeyBytes)) {}

void TokenVerifier::Configure(const std::vector<config::WebToken>& tokens) {
  ++generation_;
  verified_.clear();
  tokens_.clear();
  for (const config::WebToken& token : tokens)
    tokens_.emplace(token.name, std::make_shared<const config::WebToken>(token));
}

TokenVerifier::Token TokenVerifier::Remembered(const std::string& text) const {
  auto known = verified_.find(KeyedDigest(digest_key_, text));
  return known == verified_.end() ? nullptr : known->second;
}

Task<TokenVerifier::Verdict> TokenVerifier::Verify(std::string text, std::string address) {
  if (Token known = Remembered(text)) co_return Verdict{known};
  std::string network = NetworkOf(address);
  Duration pause = attempts_.PauseOf(network, loop_.SteadyNow());
  if (pause > Duration::zero()) co_return Verdict{nullptr, false, pause};
  Network& turns = networks_[network];
  if (turns.waiting >= kMaxWaitingOfNetwork) co_return Verdict{nullptr, true};
  Task<Verdict> turn = AwaitTurn(turns, std::move(text), std::move(network));
  Verdict verdict = co_await std::move(turn);
  co_return verdict;
}

// What was found out meanwhile counts: the token may be known now, or the network may have to pause.
Task<TokenVerifier::Verdict> TokenVerifier::AwaitTurn(Network& turns, std::string text, std::string network) {
  ++turns.waiting;
  bool has_turn = false;
  ScopeExit left([&] {
    --turns.waiting;
    if (has_turn) turns.is_busy = false;
    turns.free.NotifyOne();
    if (turns.waiting == 0) networks_.erase(network);
  });
  while (turns.is_busy) co_await turns.free.Wait();
  if (Token known = Remembered(text)) co_return Verdict{known};
  Duration pause = attempts_.PauseOf(network, loop_.SteadyNow());
  if (pause > Duration::zero()) co_return Verdict{nullptr, false, pause};
  if (waiting_ >= kMaxWaiting) co_return Verdict{nullptr, true};
  turns.is_busy = has_turn = true;
  std::string name = text.substr(0, text.find('.'));
  if (!config::IsTokenName(name) || text.size() > kMaxTokenText) name.clear();
  Task<Verdict> checking = Check(std::move(name), std::move(text), network);
  Verdict verdict = co_await std::move(checking);
  co_return verdict;
}

// An unknown name takes as long as a wrong secret.
Task<TokenVerifier::Verdict> TokenVerifier::Check(std::string name, std::string text, std::string network) {
  std::uint64_t generation = generation_;
  auto entry = tokens_.find(name);
  Token token = entry == tokens_.end() ? nullptr : entry->second;
  std::string secret = text.substr(std::min(text.size(), name.size() + 1));
  std::string hash = token ? token->hash : kHashOfNothing;
  Task<bool> matching = Matches(std::move(secret), std::move(hash));
  bool matches = co_await std::move(matching);
  if (matches && token) {
    if (generation == generation_) verified_[KeyedDigest(digest_key_, text)] = token;
    co_return Verdict{token};
  }
  attempts_.Failed(network, loop_.SteadyNow());
  co_return Verdict{};
}

Task<bool> TokenVerifier::Matches(std::string secret, std::string hash) {
  ++waiting_;
  ScopeExit waited([this] { --waiting_; });
  while (running_ >= kMaxRunning) co_await free_.Wait();
  ++running_;
  ScopeExit ended([this] {
    --running_;
    free_.NotifyOne();
  });
  Task<bool> matching = match_(std::move(secret), std::move(hash));
  bool matches = co_await std::move(matching);
  co_return matches;
}

TokenVerifier::Match MatchOnPool(BlockingPool& pool) {
  return [&pool](std::string secret, std::string hash) {
    return MatchOn(pool, std::move(secret), std::move(hash));
  };
}

}  // namespace nodepool::web
