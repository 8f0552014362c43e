#pragma once

#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/blocking_pool.h"
#include "async/event.h"
#include "async/loop.h"
#include "base/clock.h"
#include "base/subscription.h"
#include "config/config.h"
#include "driver/loading/load_config.h"
#include "web/router.h"

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

// Who sends a request: the bearer of a token.
struct Caller {
  TokenVerifier::Token token;
  std::string address;

  const std::string& name() const { return token->name; }
  bool may(config::Scope scope) const { return token->may(scope); }
};

// Who may do what through the web server (http-requests.md 2). Changes and refusals are logged by
// `nodepool.audit`.
class Access {
 public:
  // The loop outlives it; it outlives the requests.
  Access(Loop& loop, TokenVerifier::Match match);

  // Puts the tokens of `config` in force.
  void Configure(const config::Config& config);

  // The bearer of the request's token, or the refusal. `request` is valid until the task ends.
  Task<std::expected<Caller, Response>> Identify(const Request& request);
  // The caller with what his token allows now; nullopt: it was withdrawn. For answers that go on for long.
  std::optional<Caller> Renewed(const Caller& caller) const;
  // Called after each change of the tokens.
  Subscription OnChange(std::function<void()> changed) const { return changes_.Add(std::move(changed)); }
  // Whether a program of this host has sent the request, and neither a web page nor another host: it comes
  // over the loopback interface, under a name of this host. Nothing else decides about this. Never after
  // DistrustThisHost().
  bool IsOfThisHost(const Request& request) const;
  // From now on nothing is granted for being local: jobs can connect to this host's loopback interface.
  void DistrustThisHost() { trusts_this_host_ = false; }
  bool trusts_this_host() const { return trusts_this_host_; }
  // Whether the request may be read without a token.
  bool IsOpen(const Request& request) const;
  bool reading_needs_token() const { return read_needs_token_; }

  // Logs a change: "<what> <on what>: <result>".
  void Audit(const Caller& caller, const std::string& what) const;

 private:
  Response Refuse(const Request& request, const TokenVerifier::Verdict& verdict,
                  const std::string& text) const;

  TokenVerifier verifier_;
  bool read_needs_token_ = false;
  bool trusts_this_host_ = true;
  Listeners<> changes_;
  log::Logger logger_;
};

// A handler that asks for a token where reading needs one, and calls `next`. Both outlive it. No answer is
// for a browser to guess the type of, and where reading needs a token none is for scripts of other sites.
Endpoint::Handler GuardReading(Access& access, const Router& next);

}  // namespace nodepool::web
