#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/blocking_pool.h"
#include "async/gate.h"
#include "async/loop.h"
#include "base/clock.h"
#include "config/web_tokens.h"

namespace nodepool::web {

// Slows down failing attempts by key, the network of a client, within bounded memory: after each failure a
// pause, twice as long as the one before (http-requests.md 2.2).
class Attempts {
 public:
  // How long an attempt with this key has to wait yet; zero: not at all.
  Duration PauseOf(const std::string& key, SteadyTime now) const;
  void Failed(const std::string& key, SteadyTime now);
  std::size_t size() const { return failures_.size(); }

  static constexpr std::size_t kMaxKeys = 4096;

 private:
  struct Failures {
    int count = 0;
    SteadyTime last{};
  };

  void DropOld(SteadyTime now);

  std::map<std::string, Failures> failures_;
  std::deque<std::string> order_;  // of the keys, oldest first
};

// Verifies the texts of tokens, NAME.SECRET, against the hashes of the configuration (http-requests.md 2.2).
class TokenVerifier {
 public:
  using Token = std::shared_ptr<const config::WebToken>;

  struct Verdict {
    Token token;        // null: refused
    Duration pause{0};  // until the next attempt is read; only for a refusal
  };

  // Whether the secret has the hash; may take its time.
  using Match = std::function<Task<bool>(std::string secret, std::string hash)>;

  // The loop outlives it; it outlives its tasks.
  TokenVerifier(Loop& loop, Match match);

  void Configure(const std::vector<config::WebToken>& tokens);
  bool has_tokens() const { return !tokens_.empty(); }
  bool Knows(const std::string& name) const { return tokens_.contains(name); }

  // `address` is the client's. How many wait is bounded by the server's connections.
  Task<Verdict> Verify(std::string text, std::string address);

  // The token as it is configured now; null: it was withdrawn, or has another secret.
  Token Current(const config::WebToken& token) const { return TokenWith(token.name, token.hash); }

 private:
  // What a text was found to match, which stays true whatever is configured.
  struct Proof {
    std::string name;
    std::string hash;
    std::string other_hash = {};  // a later one of that name, which it does not match
  };

  Token TokenWith(const std::string& name, const std::string& hash) const;
  // What is known of the text: its token, or null for one that was withdrawn; nullopt: nothing.
  std::optional<Token> Known(const std::string& text) const;
  Verdict Judge(bool matches, const std::string& text, const Proof& claim, const std::string& network);
  Task<Verdict> VerifyInTurn(std::string text, Proof claim, std::string network);
  Task<bool> Matches(std::string secret, std::string hash);

  Loop& loop_;
  Match match_;
  std::map<std::string, Token> tokens_;  // by name
  std::map<std::string, Proof> proofs_;  // by the keyed digest of the text
  std::string digest_key_;
  Attempts attempts_;
  std::map<std::string, std::weak_ptr<Gate>> networks_;  // in which a token is being verified
  Gate running_;
};

// Compares by argon2id, on the pool, which outlives the tasks.
TokenVerifier::Match MatchOnPool(BlockingPool& pool);

}  // namespace nodepool::web
