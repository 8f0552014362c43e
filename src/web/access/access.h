#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/listeners.h"
#include "base/subscription.h"
#include "driver/loading/load_config.h"
#include "web/access/token_verifier.h"
#include "web/router.h"

namespace nodepool::web {

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
