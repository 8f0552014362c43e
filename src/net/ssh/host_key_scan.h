#pragma once

#include <string>
#include <vector>

#include "async/blocking_pool.h"
#include "async/gate.h"
#include "async/loop.h"
#include "base/log/logging.h"

namespace nodepool::net {

// Reads the host keys of machines over the network (drivers.md 6.1).
//
// Reaching the machine and waiting for its SSH greeting is asynchronous; only the
// key exchanges with a machine that has greeted run on the blocking pool, each
// for at most `try_limit`.
class HostKeyScanner {
 public:
  struct Options {
    int max_active = 100;                             // further scans wait in line
    Duration try_limit = std::chrono::seconds(10);    // of one connection
    Duration pause = std::chrono::milliseconds(500);  // between tries
  };

  HostKeyScanner(Loop& loop, BlockingPool& pool) : HostKeyScanner(loop, pool, Options()) {}
  HostKeyScanner(Loop& loop, BlockingPool& pool, Options options);

  // The keys of `host` (a name or an address) as "<type> <base64>", one per distinct
  // key, ed25519 before ecdsa before rsa. Tries again until the machine answers;
  // Error(kTimedOut) when it did not by `deadline`, which counts from the call on, the
  // waiting in line included. A machine that answers but has no key of a known kind
  // gives an empty list. With `wants_keys` false an accepted TCP connection is
  // enough and the list is empty.
  Task<std::vector<std::string>> Scan(std::string host, int port, bool wants_keys, SteadyTime deadline);

 private:
  Task<std::vector<std::string>> ScanNow(std::string host, int port, bool wants_keys, SteadyTime deadline);
  Task<std::vector<std::string>> ScanOnce(std::string host, int port, bool wants_keys, SteadyTime deadline);
  Task<std::string> Reach(std::string host, int port, bool wants_greeting);
  Task<std::vector<std::string>> CollectKeys(std::string address, int port);

  Loop& loop_;
  BlockingPool& pool_;
  Options options_;
  log::Logger logger_{"nodepool.NodescanRequest"};
  Gate gate_;
};

}  // namespace nodepool::net
