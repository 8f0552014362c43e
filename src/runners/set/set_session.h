#pragma once

#include <functional>
#include <string>

#include "runners/context.h"
#include "runners/set/set_health.h"

namespace nodepool::runners {

// Listens to the service for one set: makes the set where it is missing, has its session, and passes its
// messages on (runners.md 2.5 to 2.7). A fault never ends it.
class SetSession {
 public:
  struct Handler {
    // What the service is told: so many runners there may be.
    std::function<std::int64_t()> capacity;
    // The figures of the new session.
    std::function<void(const sched::JobStatistics&)> opened;
    // A message, or an empty one when there was none for a while; it is acknowledged once this has ended.
    std::function<Task<>(MessageSession& session, MessageBatch batch)> handle;
    // The set's record has changed, or is to be written.
    std::function<Task<>()> write;
  };

  // Everything outlives it. `record` is the set's, in the memory of its term.
  SetSession(SetContext& set, SetHealth& health, RunnerSetRecord& record, Handler handler);

  // Listens until it is cancelled; then it closes the session.
  Task<> Run();

 private:
  Task<> Serve();
  Task<> EnsureSet();
  Task<> AdoptSet(const ScaleSet& found, std::int64_t group);
  Task<> ClosePredecessor();
  Task<> Open();
  Task<> Poll();
  Task<> PollOnce(std::int64_t& last);
  Task<> Close();
  Task<> NoteState(std::string state, std::string fault);
  Duration PauseAfter(const Failure& failure);

  SetContext& set_;
  SetHealth& health_;
  RunnerSetRecord& record_;
  Handler handler_;
  std::shared_ptr<const SetSettings> adopted_;  // that the service's set was made by
  MessageSession session_;
  std::optional<SteadyTime> conflict_since_;
  std::string last_fault_;
};

}  // namespace nodepool::runners
