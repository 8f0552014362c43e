#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "driver/cloud/adapter.h"
#include "driver/driver.h"
#include "drivers/fake/fake_cloud.h"

namespace nodepool::sim {

// How a cloud behaves while nothing is wrong with it.
struct Manner {
  std::string name = "plain";
  Duration unlisted{0};           // lists lack a new machine so long
  Duration lingers{0};            // lists of resources still have a deleted one so long
  double throttle_rate = 0;       // of calls that are refused with kRateLimited while the world is busy
  bool repeats_creation = false;  // a creation without an answer is sent again, and finds its machine
  int further_calls = 0;          // that a creation needs once its machine has its id
  Duration ends_slowly{0};        // a deletion takes so long, and ends without its caller, too
  bool takes_machines = false;    // machines are interrupted, and lists say so
};

// EC2: eventual consistency, throttling, client tokens, interruptions.
Manner Ec2Like();
// Kubernetes: a node is several objects, and its namespace is Terminating for long.
Manner KubernetesLike();

// What a cloud with a manner shows, the same to all processes.
struct CloudView {
  struct Ghost {
    std::vector<driver::cloud::Resource> resources;
    SteadyTime until;
  };
  std::map<std::string, SteadyTime> listed_from;  // of new machines, by id
  std::map<std::string, Ghost> ghosts;            // deleted machines that lists still have
  std::map<std::string, SteadyTime> ending;       // deletions in progress
  std::set<std::string> taken;                    // by the cloud
  // Lists show what they showed before, as those of a replica that is behind, while faults say so.
  int old_lists = 0;
  std::optional<std::vector<driver::cloud::Instance>> instances_before;
  std::optional<std::vector<driver::cloud::Resource>> resources_before;
};

// How the API of one simulated cloud behaves at present, for all processes.
struct ApiWeather {
  bool is_out = false;       // every call fails
  double fault_rate = 0;     // of calls; half of the failed ones have had their effect
  double throttle_rate = 0;  // of calls; they have had none
  Duration max_latency{0};
  // Creations that are refused, and how many faults say so at present.
  std::map<LabelName, int> without_quota;
  std::map<LabelName, int> without_capacity;
};

// What the cloud says then. Neither is ever a reason for a request to fail.
inline constexpr std::string_view kUnreachable = "the cloud could not be reached";
inline constexpr std::string_view kThrottled = "the cloud throttles calls";
inline constexpr std::string_view kNoQuota = "quota exceeded for this label";
// Only where another pool may have it, or after launch-timeout.
inline constexpr std::string_view kNoCapacity = "there is no capacity for this label";

// The process that uses a cloud: once it is dead, its calls have no effect.
struct ApiUser {
  bool is_dead = false;
  std::map<ProviderName, SteadyTime> knows_quota;  // since when, of clouds whose quota it has read
};

// The simulated clouds of all processes and how to reach them.
struct Clouds {
  Clouds(Loop& loop, Random& random, const std::map<ProviderName, drivers::FakeSimulation>& settings,
         const std::map<ProviderName, Manner>& manners);

  Random& random;
  drivers::FakeClouds all;
  std::map<ProviderName, ApiWeather> weather;
  std::map<ProviderName, Manner> manners;
  std::map<ProviderName, CloudView> views;
};

// Driver `fake` of one process, over clouds that all processes share, each with its manner, and whose API is
// slow and fails, before a call's effect or after it. A creation whose answer is lost leaves a machine that
// only its metadata identify.
class FlakyDriver : public driver::Driver {
 public:
  // Both outlive this.
  FlakyDriver(Clouds& clouds, ApiUser& user) : clouds_(clouds), user_(user) {}

  std::string_view name() const override { return "fake"; }
  const config::Schema& ProviderSchema() const override { return drivers::FakeSchema(); }
  std::shared_ptr<const driver::ProviderConfig> LoadProviderConfig(const config::ProviderSection& section,
                                                                   config::Config& config) override {
    return drivers::LoadFakeConfig(section, config);
  }
  std::unique_ptr<driver::Provider> CreateProvider(
      driver::ProviderEnvironment environment, std::shared_ptr<const driver::ProviderConfig> config) override;

 private:
  Clouds& clouds_;
  ApiUser& user_;
};

}  // namespace nodepool::sim
