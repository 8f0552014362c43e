#pragma once

#include <functional>

#include "net/http/http_client.h"

namespace nodepool::driver::cloud::api {

// Shows the cloud who makes a call: adds a token, or a signature.
class Signer {
 public:
  virtual ~Signer() = default;

  // Drops what a call was signed with, so that the next one is signed with something new.
  using Renew = std::function<void()>;

  // Adds to `call`, which is complete but for that. Gets a credential first where none is known, through
  // a net::HttpClient and not the ApiClient that it signs for; what that throws ends the call.
  // The result is called when the service does not take the call (401), which is then repeated once;
  // null: repeating it would not help.
  virtual Task<Renew> Sign(net::HttpCall& call) = 0;
};

}  // namespace nodepool::driver::cloud::api
