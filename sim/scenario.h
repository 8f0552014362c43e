#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "driver/loading/load_config.h"
#include "drivers/fake/fake_config.h"

namespace nodepool::sim {

// What a consumer does about one request, as Zuul does it or fails to.
struct RequestPlan {
  enum class Ending {
    kUsed,       // the nodes come back `used`
    kHeld,       // they are put on hold, for a while
    kAbandoned,  // they are unlocked while `in-use`
    kUntaken,    // the fulfilled request is deleted, its nodes are never locked
  };
  Duration at{0};  // after the start
  std::string precedence = "200";
  std::vector<LabelName> labels;
  bool reuse = true;
  std::optional<std::string> tenant;
  ProviderName provider;  // a wish
  std::int64_t relative_priority = 0;
  std::optional<Duration> reprioritise_after;
  std::optional<Duration> patience;  // then the request is deleted, whatever became of it
  Duration pickup{0};                // between fulfilment and locking
  Duration use{0};
  Ending ending = Ending::kUsed;
};

// How much goes wrong while the simulation is busy; all of it ends with the busy time.
struct Trouble {
  Duration pause{0};          // on average between two mishaps; zero: none happen
  double zk_fault_rate = 0;   // of operations, while the connection holds
  double api_fault_rate = 0;  // of calls to the clouds
  Duration api_latency{0};    // of those calls, at most
};

// Everything that a seed decides before the simulation begins.
struct Scenario {
  explicit Scenario(std::uint64_t seed);

  std::uint64_t seed;
  std::vector<std::shared_ptr<const driver::LoadedConfig>> launchers;  // one each
  std::map<ProviderName, drivers::FakeSimulation> clouds;
  std::vector<RequestPlan> requests;  // by time
  Trouble trouble;
  Duration busy{0};
  Duration zk_latency{0};

  // Of all launchers together.
  std::map<PoolKey, std::shared_ptr<const driver::PoolConfig>> pools;
  std::map<ProviderName, std::shared_ptr<const driver::ProviderConfig>> providers;
  // The same for every launcher.
  config::Config common;

  // The launcher's configuration changed for a while: a provider is missing, or one was
  // changed in something that matters to nobody but makes it start anew.
  std::shared_ptr<const driver::LoadedConfig> Changed(std::size_t launcher, Random& random) const;

  // What a node of the label needs of a cloud.
  static Resources NeedOf(const LabelName& label);
  // Whether some pool can ever serve such a request.
  bool IsServable(const std::vector<LabelName>& labels) const;
};

}  // namespace nodepool::sim
