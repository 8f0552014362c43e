#pragma once

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/log/logging.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/leaks/leak_suspects.h"
#include "driver/leak_tally.h"
#include "driver/provider_environment.h"

namespace nodepool::driver::cloud {

// Finds resources with our metadata and without a record, and deletes what two consecutive sweeps find
// (drivers.md 5.11).
//
// The ZooKeeper tree may have been lost with all records. Resources of nodes are deleted all the same:
// without a record they are unusable. Uploads, and resources that outlive a machine, are deleted only if this
// tree once had the missing record, and in one sweep no more uploads than ProviderConfig::max_leaked_share
// (D-99). What is not deleted is logged once, until it changes.
class LeakCleanup {
 public:
  LeakCleanup(const ProviderEnvironment& environment, Adapter& adapter, const ProviderConfig& config)
      : environment_(environment), adapter_(adapter), config_(config) {}

  // One sweep. Returns whether something that was to be deleted is gone. A resource that cannot be deleted is
  // logged and tried again in the next sweep; a list that cannot be read is an error.
  Task<bool> Run();

 private:
  bool AreRecordsKnown() const;
  // Those of `suspects` that were suspects in the last sweep.
  std::vector<Suspect> SeenAgain(std::vector<Suspect> suspects);
  Task<std::vector<Suspect>> OnceKnown(std::vector<Suspect> leaked);
  Task<bool> WasKnown(const Suspect& suspect);
  std::vector<Suspect> WithinShare(std::vector<Suspect> leaked, const std::vector<Resource>& resources);
  Task<bool> Delete(Suspect suspect, LeakTally& tally);
  void SayOnce(std::string& said, std::string text);

  const ProviderEnvironment& environment_;
  Adapter& adapter_;
  const ProviderConfig& config_;
  log::Logger logger_{"nodepool.StateMachineProvider." + config_.name.value};
  std::set<std::tuple<std::string, std::string, std::string>> suspects_;  // keys of the last sweep
  std::string said_of_unknown_, said_of_share_;
};

// The max. number of `all` that one sweep deletes, for a share in percent: at least one, unless the share is
// 0.
std::size_t MaxLeaked(std::size_t all, int share);

}  // namespace nodepool::driver::cloud
