#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/blocking_pool.h"
#include "base/error.h"

struct ssh_session_struct;

namespace nodepool::net {

// The result of a key exchange with an SSH server that stops once the host key is known.
struct HostKey {
  std::string type;  // as in the key itself, e.g. "ssh-rsa"
  std::string base64;
  std::string Line() const { return type + " " + base64; }
};

// A key exchange in steps that compute but never wait. The owner calls Step() each time when the
// server has sent something, for as long as it likes.
class KeyExchange {
 public:
  // `descriptor`: a non-blocking socket that is connected to the server; closed by this object.
  // `algorithm` is the only host key algorithm offered; empty offers all.
  KeyExchange(int descriptor, std::string algorithm);
  ~KeyExchange();
  KeyExchange(const KeyExchange&) = delete;
  KeyExchange& operator=(const KeyExchange&) = delete;

  // The key, once it is known; nullopt while the server has to send more. kNotFound: the server has
  // no key for the algorithm. kRetry: any other failure. Not to be called again after either.
  Expected<std::optional<HostKey>> Step();

 private:
  struct FreeSession {
    void operator()(ssh_session_struct* session) const;
  };

  Expected<HostKey> ServersKey() const;

  int descriptor_;  // -1 once the session has it
  std::string algorithm_;
  std::unique_ptr<ssh_session_struct, FreeSession> session_;
};

// What one connection to an SSH server has shown.
struct KeyAnswer {
  std::optional<HostKey> key;  // none: the server has no key for the algorithm
  // Host key algorithms that the server offers; nullopt: not known.
  std::optional<std::vector<std::string>> offered;
};

// Connects and exchanges keys up to the moment when the host key is known. `algorithm` is the only host key
// algorithm that is accepted; empty: any. Waits without limit; arithmetic is done on the pool. Throws when
// the server cannot be reached, is not an SSH server or hangs up.
Task<KeyAnswer> AskForKey(BlockingPool& pool, boost::asio::ip::tcp::endpoint machine, std::string algorithm);

}  // namespace nodepool::net
