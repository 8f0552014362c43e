#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "driver/loading/load_config.h"
#include "drivers/fake/fake_config.h"
#include "sim/flaky_cloud.h"

namespace nodepool::sim {

// Uploaded by ImageBuilder to every provider, if the scenario has images; a label boots from it.
inline constexpr const char* kImage = "deb";
inline constexpr const char* kImageLabel = "imaged";

// What a consumer does with one request, including Zuul's failures.
struct RequestPlan {
  enum class Ending {
    kUsed,       // the nodes are returned as `used`
    kHeld,       // the nodes are held for a while
    kAbandoned,  // the nodes are unlocked while `in-use`
    kUntaken,    // the fulfilled request is deleted without locking its nodes
  };
  Duration at{0};  // after the start
  std::string precedence = "200";
  std::vector<LabelName> labels;
  bool reuse = true;
  std::optional<std::string> tenant;
  ProviderName provider;  // the requested one
  std::int64_t relative_priority = 0;
  std::optional<Duration> reprioritise_after;
  std::optional<Duration> withdraw_after;  // then the request is deleted in whatever state
  Duration pickup{0};                      // between fulfilment and locking
  Duration use{0};
  Ending ending = Ending::kUsed;
};

// The faults while the simulation is busy; all of them end with the busy phase.
struct Trouble {
  Duration pause{0};          // average time between two faults; zero: none
  double zk_fault_rate = 0;   // fraction of operations, while the connection holds
  double api_fault_rate = 0;  // fraction of calls to the clouds
  Duration api_latency{0};    // max. of those calls
};

// Everything that a seed decides before the simulation begins.
struct Scenario {
  explicit Scenario(std::uint64_t seed);

  std::uint64_t seed;
  std::vector<std::shared_ptr<const driver::LoadedConfig>> launchers;  // one each
  std::map<ProviderName, drivers::FakeSimulation> clouds;
  std::map<ProviderName, Manner> manners;  // the same for all clouds
  std::vector<RequestPlan> requests;       // by time
  bool has_images = false;
  Trouble trouble;
  Duration busy{0};
  Duration zk_latency{0};

  // Of all launchers together.
  std::map<PoolKey, std::shared_ptr<const driver::PoolConfig>> pools;
  std::map<ProviderName, std::shared_ptr<const driver::ProviderConfig>> providers;
  // The same for every launcher.
  config::Config common;

  // The launcher's configuration with a temporary change: a provider is missing, or has an irrelevant change
  // that makes it restart.
  std::shared_ptr<const driver::LoadedConfig> Changed(std::size_t launcher, Random& random) const;

  // The resources that a node of the label needs.
  static Resources NeedOf(const LabelName& label);
  // Whether any pool can ever serve such a request.
  bool IsServable(const std::vector<LabelName>& labels) const;
};

}  // namespace nodepool::sim
