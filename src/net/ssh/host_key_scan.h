#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <map>
#include <string>
#include <vector>

#include "async/blocking_pool.h"
#include "async/gate.h"
#include "async/loop.h"
#include "base/log/logging.h"
#include "net/ssh/key_exchange.h"

namespace nodepool::net {

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
