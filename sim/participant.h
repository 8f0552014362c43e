#pragma once

#include <optional>
#include <string>

#include "sim/flaky_cloud.h"
#include "zk/client.h"

namespace nodepool::sim {

// A process with a session: a launcher, or a consumer such as Zuul.
struct Participant {
  std::string name;  // "np1.2": the second life of launcher 1
  bool is_launcher = false;
  const zk::Client* client = nullptr;  // null once it is gone
  ApiUser api;
  // Set while its connection is cut, and some time after: changes since then may be unknown to it.
  std::optional<SteadyTime> blind_since;
};

}  // namespace nodepool::sim
