#pragma once

#include <string>

#include "base/clock.h"
#include "base/error.h"

namespace nodepool::net {

// One key exchange with an SSH server, far enough to learn its host key.
struct HostKey {
  std::string type;  // as in the key itself, e.g. "ssh-rsa"
  std::string base64;
  std::string Line() const { return type + " " + base64; }
};

// Blocks, for at most `limit` (rounded up to seconds). `algorithm` is the only host
// key algorithm offered; empty offers all. kNotFound: the server has no key for it.
// kRetry: anything else went wrong. `address` is numeric.
Expected<HostKey> ReadHostKey(const std::string& address, int port, const std::string& algorithm,
                              Duration limit);

}  // namespace nodepool::net
