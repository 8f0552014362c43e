#pragma once

#include <memory>
#include <string>

#include "async/task_group.h"
#include "sim/inspector.h"
#include "sim/mortal_zk.h"
#include "store/store.h"

namespace nodepool::sim {

// A process that requests nodes as Zuul does: creates requests, waits, locks the nodes, deletes the request,
// uses the nodes and returns them, according to a plan for each request.
class Consumer {
 public:
  // Counts requests by outcome.
  struct Tally {
    int submitted = 0;
    int fulfilled = 0;
    int failed = 0;
    int withdrawn = 0;  // by the client
  };

  // All arguments outlive this.
  Consumer(Loop& loop, testing::MemoryZk& zk, Random& faults, Inspector& inspector, std::uint64_t seed,
           std::string name, Tally& tally);
  ~Consumer();  // when is_idle(), or after Vanish() and the loop's next run

  // Begins the plan now; the caller chooses the time.
  void Submit(RequestPlan plan);
  // The process dies; its session expires.
  void Vanish(testing::MemoryZk::UnderWay under_way);
  bool is_idle() const { return tasks_.size() == 0; }
  bool is_dead() const { return zk_.is_dead(); }
  Task<> Close() { return zk_.Close(); }

 private:
  Task<> Serve(RequestPlan plan);
  Task<> Reprioritise(RequestId id, Duration after);
  Task<> WithdrawLater(RequestId id, Duration after);
  Task<> AwaitDecision(RequestId id);
  Task<std::vector<store::LockedNode>> Take(RequestId id, NodeRequest request);
  Task<> Use(std::vector<store::LockedNode> nodes, RequestPlan plan);

  Loop& loop_;
  Inspector& inspector_;
  Tally& tally_;
  SeededRandom random_;
  MortalZk zk_;
  store::Store store_;
  std::shared_ptr<Participant> participant_;
  TaskGroup tasks_;
};

}  // namespace nodepool::sim
