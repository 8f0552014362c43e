#pragma once

#include <deque>
#include <map>
#include <string>

#include "async/attempt.h"
#include "async/event.h"
#include "async/task.h"
#include "base/subscription.h"
#include "driver/cloud/adapter.h"
#include "driver/provider_environment.h"
#include "driver/quota_information.h"

namespace nodepool::driver::cloud {

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

  // A call of the cloud ended with an outage (driver/cloud/outage.h), with this message: the provider counts
  // as away until it has answered a read that begins from now on.
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
