#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "async/blocking_pool.h"
#include "async/event.h"
#include "async/loop.h"
#include "config/web_tokens.h"
#include "web/access/attempts.h"

namespace nodepool::web {

// Verifies the texts of tokens, NAME.SECRET, against the hashes of the configuration (http-requests.md 2.2).
class TokenVerifier {
 public:
  using Token = std::shared_ptr<const config::WebToken>;

  struct Verdict {
    Token token;                 // null: refused
    bool is_overloaded = false;  // too many verifications wait
    Duration pause{0};           // until the next attempt is read; only for a refusal
  };

  // Whether the secret has the hash; may take its time.
  using Match = std::function<Task<bool>(std::string secret, std::string hash)>;

  // The loop outlives it; it outlives its tasks.
  TokenVerifier(Loop& loop, Match match);

  void Configure(const std::vector<config::WebToken>& tokens);
  bool has_tokens() const { return !tokens_.empty(); }
  bool Knows(const std::string& name) const { return tokens_.contains(name); }

  // `address` is the client's.
  Task<Verdict> Verify(std::string text, std::string address);

 private:
  // The clients of a network wait for each other, so that a stranger has one attempt at a time.
  struct Network {
    bool is_busy = false;
    std::size_t waiting = 0;
    WaitList free;
  };

  Token Remembered(const std::string& text) const;
  Task<bool> Matches(std::string secret, std::string hash);
  // Of the client whose turn it is.
  Task<Verdict> Check(std::string name, std::string text, std::string network);
  Task<Verdict> AwaitTurn(Network& turns, std::string text, std::string network);

  Loop& loop_;
  Match match_;
  std::map<std::string, Token> tokens_;    // by name
  std::map<std::string, Token> verified_;  // by the keyed digest of the text
  std::string digest_key_;
  std::uint64_t generation_ = 0;  // of the configuration
  Attempts attempts_;
  std::map<std::string, Network> networks_;  // in which a token is being verified
  std::size_t running_ = 0;
  std::size_t waiting_ = 0;
  WaitList free_;
};

// Compares by argon2id, on the pool, which outlives the tasks.
TokenVerifier::Match MatchOnPool(BlockingPool& pool);

}  // namespace nodepool::web
