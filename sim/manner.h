#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "driver/cloud/adapter.h"

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
  // Lists show what they showed before, as those of a replica that is behind, while mishaps say so.
  int old_lists = 0;
  std::optional<std::vector<driver::cloud::Instance>> instances_before;
  std::optional<std::vector<driver::cloud::Resource>> resources_before;
};

}  // namespace nodepool::sim
