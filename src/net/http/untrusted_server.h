#pragma once

#include "net/http/http_client.h"

namespace nodepool::net {

// No authority that the client trusts has signed the server's certificate.
class UntrustedServer : public HttpError {
 public:
  explicit UntrustedServer(std::string message) : HttpError(Verdict::kInvalid, std::move(message), false) {}
};

}  // namespace nodepool::net
