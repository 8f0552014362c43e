#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "async/loop.h"
#include "base/random.h"
#include "zk/client.h"
#include "zk/tree/tree.h"

namespace nodepool::testing {

struct MemoryZkOptions {
  // From a call to its answer; half of it passes before the operation takes effect.
  // Zero: everything happens at the present instant, still one handler after another.
  Duration latency{0};
  // Each half of the way may take up to so much longer, as `random` decides; the order on one
  // connection is preserved. `random` outlives the ensemble.
  Duration jitter{0};
  Random* random = nullptr;
  // How long a session outlives its connection.
  Duration session_timeout = std::chrono::seconds(10);
};

// A ZooKeeper ensemble within the process: one tree, any number of clients, each with a session of
// its own, on the loop's clock. Deterministic. Keeps the real one's promises: answers in the order
// of the calls, a watch event before any answer that shows the change, ephemeral znodes deleted
// with the session.
//
// Outlives its clients. A client that is destroyed without Close() has crashed: its session
// continues until the session time-out.
class MemoryZk {
 public:
  // What becomes of the operations that are in flight when a connection breaks. Their callers get
  // Error(kRetry) either way.
  enum class UnderWay { kNotDone, kDone };

  struct Counters {
    std::uint64_t reads = 0;   // also Sync and AddWatch
    std::uint64_t writes = 0;  // a transaction counts once
  };

  explicit MemoryZk(Loop& loop, MemoryZkOptions options = {});
  ~MemoryZk();

  // The client connects when the loop runs.
  std::unique_ptr<zk::Client> Connect();

  // `client` below is one that Connect() returned, not a wrapper around it.

  // Breaks the connection and keeps it broken (kSuspended) until Reconnect().
  void Disconnect(zk::Client& client, UnderWay under_way = UnderWay::kNotDone);
  void Reconnect(zk::Client& client);
  // The servers end the session at once. A connected client is notified when the loop runs, another
  // when it is reconnected.
  void ExpireSession(zk::Client& client);
  // The servers drop the watches of the connection, which goes on: nothing shows it.
  void LoseWatches(zk::Client& client);

  // Operations sent to the servers so far.
  Counters counters(const zk::Client& client) const;

  // Applies to operations sent from now on.
  void SetLatency(Duration latency);

  // Called for every znode that a transaction changed, after the transaction as a whole and in its
  // order, with the session that wrote it; 0: the servers themselves, or a change made through
  // tree().
  using WriteListener = std::function<void(std::int64_t session, const zk::WatchEvent& change)>;
  void OnWrite(WriteListener listener);

  // The data, for assertions and for changes by no client in particular (session 0); such changes
  // take effect at once and reach the watchers as usual.
  zk::DataTree& tree();

 private:
  struct Ensemble;
  class Link;
  class ClientOfTree;

  std::shared_ptr<Ensemble> ensemble_;
};

}  // namespace nodepool::testing
