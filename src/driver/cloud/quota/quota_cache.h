#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/task.h"
#include "async/task_group.h"
#include "base/clock.h"
#include "base/subscription.h"
#include "driver/cloud/adapter.h"
#include "driver/provider_config.h"
#include "driver/provider_environment.h"

namespace nodepool::driver::cloud {

// The resources that one node of a label needs, asked once for each label of a provider. A label that can
// never work is in error: it is refused for 5 minutes, then probed again (D-26).
//
// Belongs to a provider, which is replaced when its configuration changes (configuration.md 9.7). A reload
// that changes other things makes new LabelConfigs of equal content, so labels are known by their names.
class LabelNeeds {
 public:
  // `changed` is called when a label in error may be probed again.
  LabelNeeds(TaskGroup& group, Adapter& adapter, std::function<void()> changed);

  // Error(kInvalid) while the label is in error; other errors are not cached.
  QuotaInformation For(const LabelConfig& label);
  bool IsInError(const LabelConfig& label) const;
  // All labels are asked again.
  void Clear();
  // Labels in error are asked again; a fault that stays is not reported again.
  void DoubtFaults();

 private:
  struct Fault {
    Error error;
    std::uint64_t number;  // of all faults: a later one of the same label is another one
    bool is_doubted = false;
  };

  void Note(const LabelConfig& label, const Error& error);

  Task<> ClearFaultLater(LabelKey label, std::uint64_t number);

  TaskGroup& group_;
  Adapter& adapter_;
  std::function<void()> changed_;
  log::Logger logger_{"nodepool.StateMachineHandler"};
  std::map<LabelKey, QuotaInformation> needs_;
  std::map<LabelKey, Fault> faults_;
  std::uint64_t fault_count_ = 0;
};

// Which candidates (Adapter::Candidates) a provider's cloud recently had no capacity for.
class Shortages {
 public:
  // How long a candidate is avoided.
  static constexpr Duration kLast = std::chrono::minutes(5);

  void Add(const std::string& candidate, SteadyTime now) { since_[candidate] = now; }
  // The candidate was created.
  void Remove(const std::string& candidate) { since_.erase(candidate); }
  bool Contains(const std::string& candidate, SteadyTime now) const;
  // When the candidate, which must be contained, is no longer avoided.
  SteadyTime Until(const std::string& candidate) const { return since_.at(candidate) + kLast; }

  // The one to try next, as an index of `candidates`: the first without a shortage, else the one whose
  // shortage is oldest; none that is in `tried`. None: all were tried.
  std::optional<std::size_t> Next(const std::vector<std::string>& candidates,
                                  const std::set<std::size_t>& tried, SteadyTime now) const;

 private:
  std::map<std::string, SteadyTime> since_;  // bounded by what the provider's labels name
};

// Which candidate one attempt of a launch creates.
class CandidateChoice {
 public:
  // Begins with the best one. `shortages` outlives the choice.
  CandidateChoice(std::vector<std::string> candidates, Shortages& shortages, SteadyTime now);

  std::size_t index() const { return index_; }
  // Empty: the adapter has no candidates.
  std::string name() const { return candidates_.empty() ? "" : candidates_[index_]; }
  // The preferred candidates that were not chosen because of shortages: "; no capacity for a, b", or empty.
  std::string Why(SteadyTime now) const;

  // The current candidate and why, for operators: "b, the first choice", "c; no capacity for a until 12:03
  // UTC, b until 12:05 UTC". Empty: the adapter has no candidates. `wall` is the time `now` as operators know
  // it.
  std::string Explain(SteadyTime now, WallTime wall) const;

  void Created() { shortages_.Remove(name()); }
  // The cloud has no capacity for the current one: takes the next. False: all were tried.
  bool MoveOn(SteadyTime now);

 private:
  std::vector<std::string> candidates_;
  Shortages& shortages_;
  std::set<std::size_t> tried_;
  std::size_t index_ = 0;
};

// The quota available to this provider: the cloud's limits minus what others use, which the adapter knows, or
// else are machines that no node describes, leaked ones included (drivers.md 2.2, 5.11). Read in the
// background every 300 s and whenever it was invalidated; the last value remains valid until a newer one is
// read. A read that fails is the provider's fault until one succeeds (ProviderEnvironment::report_fault).
//
// The reads are also the probe of a provider that is away, one for all who wait for its return, after growing
// pauses while they fail. A failed read alone does not make it away: only a part of the cloud may be.
class QuotaCache {
 public:
  // Everything outlives the cache.
  QuotaCache(const ProviderEnvironment& environment, Adapter& adapter, ProviderName provider);

  // Unlimited until first known.
  const QuotaInformation& available() const { return available_; }
  const QuotaInformation& used_by_others() const { return used_by_others_; }
  bool is_known() const { return is_known_; }
  // The adapter knows what others use, as it comes and goes.
  bool follows_others() const { return follows_others_; }
  // Everything is read again.
  void Invalidate() {
    is_list_wanted_ = true;
    invalidated_.Set();
  }
  // The adapter announced a change. Machines are listed for it only if it does not follow others itself.
  void Announce() {
    is_list_wanted_ = is_list_wanted_ || !follows_others_;
    invalidated_.Set();
  }

  // A call of the cloud ended with an outage (driver/cloud/api/api_error.h), with this message: the provider
  // counts as away until it has answered a read that begins from now on.
  void Doubt(std::string cause);
  bool is_away() const { return is_away_; }
  // Reads that ended with an outage.
  int outages() const { return outages_; }
  // Ends when the provider is not away, at once if it is not. Error(kQuota) once the provider is to stop: its
  // successor, if there is one, may be able to use the cloud.
  Task<> WaitUntilBack();
  // The provider is to stop. It is still probed, but not waited for.
  void EndWaits();

  // Reads until it is cancelled.
  Task<> Run();
  // Ends after the first read, successful or not, or after 30 s.
  Task<> WaitForFirstTry();

 private:
  void NoteEnd(const Outcome<>& read);
  Task<> Refresh();
  Task<> Read();
  Task<QuotaInformation> ReadMachinesOfOthers();
  bool IsOurs(const Instance& instance) const;
  void NoteRemoval(const NodeId& id);
  Task<> WaitForInvalidation();

  const ProviderEnvironment& environment_;
  Adapter& adapter_;
  ProviderName provider_;
  QuotaInformation available_ = QuotaInformation::Limit({});
  QuotaInformation used_by_others_;
  QuotaInformation machines_of_others_;  // at the last list
  struct Removal {
    NodeId node;
    SteadyTime when;
  };
  std::map<NodeId, SteadyTime> removed_;   // records of the last minute; their machines may still be listed
  std::deque<Removal> removals_in_order_;  // the same
  Subscription removals_;
  SteadyTime list_due_{};
  bool is_list_wanted_ = false;
  bool is_known_ = false;
  bool follows_others_ = false;
  bool is_away_ = false;
  bool is_doubted_ = false;  // since the last read began
  bool is_stopping_ = false;
  int outages_ = 0;
  WaitList back_;
  Event invalidated_{"the quota to be doubted"};
  Event tried_{"the cloud's quota"};
};

}  // namespace nodepool::driver::cloud
