#pragma once

#include <optional>
#include <string>

#include "async/gate.h"
#include "runners/github/login.h"

namespace nodepool::runners::github {

// Where the Actions service of a config URL is, and the token for it.
struct Admin {
  std::string base;   // without a slash at the end
  std::string token;  // secret
};

// The admin connection: made when it is needed, renewed a minute before its end (runners.md 2.3).
class AdminConnection {
 public:
  // Both outlive it.
  AdminConnection(Calls& calls, Login& login, Scope scope);

  // Error(kInvalid) and ServiceError when GitHub refuses us.
  Task<Admin> Get();
  // The service does not accept its token any more.
  void Discard() { admin_.reset(); }

 private:
  Task<Admin> Make();
  Task<std::string> RegistrationToken();
  Task<net::HttpReply> Register(std::string token);

  Calls& calls_;
  Login& login_;
  Scope scope_;
  std::optional<Admin> admin_;
  SteadyTime good_until_{};
  Gate gate_{1};
};

// For how long a token is good, by the claims in it, which are not verified; nullopt: it does not say so.
std::optional<WallTime> EndOfToken(const std::string& token);

}  // namespace nodepool::runners::github
