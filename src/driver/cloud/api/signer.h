#pragma once

#include <functional>

#include "net/http/http_client.h"

namespace nodepool::driver::cloud::api {

// Authenticates calls: adds a token or a signature.
class Signer {
 public:
  virtual ~Signer() = default;

  // Discards the credential of a call, so that the next call gets a new one; gets the refusal.
  using Renew = std::function<void(const net::HttpReply& refusal)>;

  // Signs `call`, which is otherwise complete. Fetches a credential first if none is known, through a
  // net::HttpClient and not the ApiClient that it signs for; what that throws ends the call. The result is
  // called if the service does not accept the signature (Fault::refuses_signature); the call is then
  // repeated once. Null: repeating would not help.
  virtual Task<Renew> Sign(net::HttpCall& call) = 0;
};

// For services that need no credential, such as those that give one.
class NoSigner : public Signer {
 public:
  Task<Renew> Sign(net::HttpCall&) override { co_return nullptr; }
};

}  // namespace nodepool::driver::cloud::api
