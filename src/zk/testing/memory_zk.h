#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/loop.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/subscription.h"
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

// Passes everything on to another client, records it, and makes some operations fail: before their
// effect (nothing happened) or after it (it happened and the caller did not learn it). The
// connection itself stays up.
class FaultyZk : public zk::Client {
 public:
  enum class Fault { kNone, kBefore, kAfter };

  struct Call {
    std::string name;  // of the member function, e.g. "Create"
    std::string path;  // Multi: of its first part
    bool is_write;
    Fault fault = Fault::kNone;  // the injected fault
  };

  // `inner` must outlive this.
  explicit FaultyZk(zk::Client& inner) : inner_(inner) {}

  // Each replaces the former rule. Operations are counted from 0, from this call on.
  void FailWhen(std::function<Fault(const Call&)> rule);
  void FailNth(std::size_t n, Fault fault);
  // Each operation fails with `probability`, half of them after the effect.
  // `random` must outlive the rule.
  void FailRandomly(double probability, Random& random);
  void FailNever() { rule_ = nullptr; }
  // What a failed operation throws; at first Error(kRetry, "injected fault").
  void SetError(Error error) { error_ = std::move(error); }

  // From now on caches read what this client writes, as if another had written it.
  void HideOwnWrites() { hides_own_writes_ = true; }

  const std::vector<Call>& calls() const { return calls_; }
  std::size_t CountWrites() const;
  void ClearCalls() { calls_.clear(); }

  Task<zk::Result<zk::Created>> Create(std::string path, std::string data, zk::CreateMode mode) override;
  Task<zk::Result<zk::NodeData>> Get(std::string path) override;
  Task<zk::Result<zk::Stat>> Exists(std::string path) override;
  Task<zk::Result<zk::Stat>> Set(std::string path, std::string data, std::int32_t version) override;
  Task<zk::Result<>> Delete(std::string path, std::int32_t version) override;
  Task<zk::Result<zk::Children>> GetChildren(std::string path) override;
  Task<zk::MultiResult> Multi(std::vector<zk::Op> ops) override;
  Task<> Sync(std::string path) override;
  Task<zk::Result<zk::NodeData>> GetAndWatch(std::string path, zk::Watcher watcher) override;
  Task<zk::Result<zk::Stat>> ExistsAndWatch(std::string path, zk::Watcher watcher) override;
  Task<zk::Result<zk::Children>> GetChildrenAndWatch(std::string path, zk::Watcher watcher) override;
  Task<Subscription> AddWatch(std::string path, zk::WatchMode mode, zk::Watcher watcher) override;
  Subscription OnSession(std::function<void(zk::SessionState)> listener) override {
    return inner_.OnSession(std::move(listener));
  }
  zk::SessionState state() const override { return inner_.state(); }
  zk::Session session() const override { return inner_.session(); }
  const zk::OwnWrites& own_writes() const override { return hides_own_writes_ ? none_ : inner_.own_writes(); }
  Task<> Close() override { return inner_.Close(); }

 private:
  template <class Start>
  auto Apply(const char* name, const std::string& path, bool is_write, Start start) -> decltype(start());

  zk::Client& inner_;
  std::function<Fault(const Call&)> rule_;
  Error error_{Verdict::kRetry, "injected fault"};
  std::vector<Call> calls_;
  bool hides_own_writes_ = false;
  zk::OwnWrites none_;
};

}  // namespace nodepool::testing
