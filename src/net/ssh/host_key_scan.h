#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "async/blocking_pool.h"
#include "async/event.h"
#include "async/loop.h"
#include "base/error.h"
#include "base/log/logging.h"

namespace nodepool::net {

// Reads what an SSH server sends before keys are exchanged (RFC 4253, 4.2 and 7.1): its identification, and
// the packet in which it lists the algorithms it offers. Keeps a bounded part of what it is given.
class ServerHello {
 public:
  static constexpr std::size_t kMostBytesOfLine = 2048;

  // Takes the bytes that the server sent next. Returns what an SSH library is to read of all that was not
  // passed on before: everything from the identification on. So that is at most a line longer than `bytes`.
  // Error(kRetry): this is no SSH server.
  Expected<std::string> Add(std::string_view bytes);

  // In the server's order. nullopt: they are not known, since the packet is not complete, or is not the
  // first.
  const std::optional<std::vector<std::string>>& host_key_algorithms() const { return host_key_algorithms_; }

 private:
  enum class Part { kLines, kPacket, kRest };

  Expected<std::string> ReadLines();
  void ReadPacket();

  Part part_ = Part::kLines;
  std::string pending_;  // received, and not read yet
  int lines_ = 0;        // before the identification
  std::optional<std::vector<std::string>> host_key_algorithms_;
};

}  // namespace nodepool::net

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

// Reads the host keys of machines over the network (drivers.md 6.1).
//
// All waiting is asynchronous: machines that do not answer cost neither a thread nor time when the
// scan is cancelled. Only the arithmetic of the key exchanges runs on the blocking pool.
class HostKeyScanner {
 public:
  // An eighth of the files that the process may open, from 100 to 1,000.
  static int MostConnections();

  struct Options {
    int max_active = MostConnections();             // tries at a time; further ones wait in a queue
    Duration try_limit = std::chrono::seconds(10);  // of one connection with its key exchange
    // Between tries: a quarter of the time that the scan has taken, in these bounds.
    Duration least_pause = std::chrono::milliseconds(50);
    Duration most_pause = std::chrono::milliseconds(500);
  };

  HostKeyScanner(Loop& loop, BlockingPool& pool) : HostKeyScanner(loop, pool, Options()) {}
  HostKeyScanner(Loop& loop, BlockingPool& pool, Options options);

  // The keys of `host` (a name or an address) as "<type> <base64>", one per distinct key, ed25519
  // before ecdsa before rsa. Tries again until the machine answers; Error(kTimedOut) when it did
  // not by `deadline`, which includes the time in the queue. For a machine that answers but has no
  // key of a known kind the list is empty. With `wants_keys` false an accepted TCP connection is
  // enough and the list is empty.
  Task<std::vector<std::string>> Scan(std::string host, int port, bool wants_keys, SteadyTime deadline);

 private:
  using Endpoint = boost::asio::ip::tcp::endpoint;
  using LineOfType = std::map<std::string, std::string>;  // keys, by type

  Task<std::vector<std::string>> ScanNow(std::string host, int port, bool wants_keys, SteadyTime deadline);
  Task<std::vector<std::string>> ScanOnce(std::string host, int port, bool wants_keys, SteadyTime deadline);
  Task<std::vector<std::string>> ReadKeys(Endpoint machine, SteadyTime deadline);
  Task<> ReadFurtherKeys(Endpoint machine, KeyAnswer first, LineOfType& lines);
  Task<> ReadKeyOfType(Endpoint machine, std::string type, KeyAnswer first, LineOfType& lines);
  Task<KeyAnswer> Ask(Endpoint machine, std::string algorithm, SteadyTime deadline);

  Loop& loop_;
  BlockingPool& pool_;
  Options options_;
  log::Logger logger_{"nodepool.NodescanRequest"};
  Gate gate_;
  Gate further_connections_;  // of all scans, beside each one's first
};

}  // namespace nodepool::net
