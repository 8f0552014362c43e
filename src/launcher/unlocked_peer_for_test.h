#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "async/task_group.h"
#include "base/ids.h"
#include "store/cache/cached_records.h"
#include "store/store.h"
#include "store/unlocked_records.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::launcher {

// A launcher with one static provider that works as the Python implementation does (drivers.md 7): it polls
// requests every second, dead nodes every five and slots without a node every minute, and registers nodes
// without a lock.
class UnlockedPeer {
 public:
  struct Settings {
    ProviderName provider;
    PoolName pool;
    std::map<std::string, int> hosts;  // slots by name
    LabelName label;
    Duration longest_scan = std::chrono::milliseconds(400);
  };

  UnlockedPeer(Loop& loop, testing::MemoryZk& zk, std::uint64_t seed, Settings settings);
  ~UnlockedPeer();  // call Stop() first

  void Start() { tasks_.Spawn("peer", Run()); }
  // As if killed: its session ends at once.
  Task<> Stop();

 private:
  using SlotKey = std::pair<std::string, int>;

  Task<> Run();
  Task<> ServeRequests();
  Task<> Serve(RequestId id);
  Task<> KeepHosts();
  Task<> DeleteDead();
  Task<> Delete(NodeId id);
  Task<> Deallocate(NodeId id);
  Task<> SyncAll();
  Task<> Register(SlotKey slot);
  Task<> Deregister(NodeId id);
  // Which node is registered for which slot; surplus nodes go to `excess`.
  Task<std::map<SlotKey, NodeId>> ReadSlots(std::vector<NodeId>& excess);
  Task<> Scan();
  Component Self(ComponentKind kind, ComponentState state) const;

  Loop& loop_;
  testing::MemoryZk& zk_;
  SeededRandom random_;
  std::string id_;
  Settings settings_;
  std::unique_ptr<zk::Client> client_;
  store::Store store_;
  store::NodeCache nodes_;
  store::RequestCache requests_;
  store::ComponentEntry launcher_;
  store::ComponentEntry pool_;
  TaskGroup tasks_;
};

}  // namespace nodepool::launcher
