#pragma once

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/log/logging.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/leak_suspects.h"
#include "driver/leak_tally.h"
#include "driver/provider.h"

namespace nodepool::driver::cloud {

// Finds what stands in the cloud with our name on it though no record knows it, and deletes it at
// the second look in a row that finds it so (drivers.md 5.11).
//
// A tree may have been lost, and then it knows nothing. What belongs to a node goes all the same:
// without its record nobody can use it. What was uploaded, and what outlives a machine, goes only
// if this tree once had the record that is missing, and of what was uploaded never more in one
// look than ProviderConfig::max_leaked_share (D-99). What stays is logged, once while it is the
// same.
class LeakCleanup {
 public:
  LeakCleanup(const ProviderEnvironment& environment, Adapter& adapter, const ProviderConfig& config)
      : environment_(environment), adapter_(adapter), config_(config) {}

  // One look. Returns whether something was deleted. A resource that cannot be deleted is logged
  // and tried again at the next look; a list that cannot be read is an error.
  Task<bool> Run();

 private:
  bool AreRecordsKnown() const;
  // Those of `suspects` that were suspects at the last look.
  std::vector<Suspect> SeenAgain(std::vector<Suspect> suspects);
  Task<std::vector<Suspect>> OnceKnown(std::vector<Suspect> leaked);
  Task<bool> WasKnown(const Suspect& suspect);
  std::vector<Suspect> WithinShare(std::vector<Suspect> leaked, const std::vector<Resource>& resources);
  Task<> Delete(Suspect suspect, LeakTally& tally);
  void SayOnce(std::string& said, std::string text);

  const ProviderEnvironment& environment_;
  Adapter& adapter_;
  const ProviderConfig& config_;
  log::Logger logger_{"nodepool.StateMachineProvider." + config_.name.value};
  std::set<std::tuple<std::string, std::string, std::string>> suspects_;  // keys, of the last look
  std::string said_of_unknown_, said_of_share_;
};

// How many of `all` are at most deleted in one look, at a share in percent: at least one, unless
// the share is 0.
std::size_t MaxLeaked(std::size_t all, int share);

}  // namespace nodepool::driver::cloud
