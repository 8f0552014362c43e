#pragma once

#include <set>
#include <string>
#include <tuple>

#include "base/logging.h"
#include "driver/leak_tally.h"
#include "driver/provider.h"
#include "driver/statemachine/adapter.h"

namespace nodepool::driver::statemachine {

// Finds what stands in the cloud with our name on it though no record knows it, and
// deletes it at the second look in a row that finds it so (drivers.md 5.11). Leaked
// are: what belongs to a node without a record; an image without an upload record;
// a machine of a living node whose record names another machine (D-92).
class LeakCleanup {
 public:
  LeakCleanup(Loop& loop, Adapter& adapter, ProviderName provider, const store::NodeCache& nodes,
              const store::ImageCache& images, ProviderObserver* observer);

  // One look. Returns whether something was deleted. A resource that cannot be
  // deleted is logged and tried again at the next look; a list that cannot be read
  // is an error.
  Task<bool> Run();

 private:
  // Type and id of a resource, and the record that it lacks.
  using Suspect = std::tuple<std::string, std::string, std::string>;

  std::set<Suspect> FindSuspects(const std::vector<Resource>& resources) const;
  Task<> Delete(Resource resource, LeakTally& tally);

  Loop& loop_;
  Adapter& adapter_;
  ProviderName provider_;
  const store::NodeCache& nodes_;
  const store::ImageCache& images_;
  ProviderObserver* observer_;
  log::Logger logger_{"nodepool.driver.leaks"};
  std::set<Suspect> suspects_;  // of the last look
};

}  // namespace nodepool::driver::statemachine
