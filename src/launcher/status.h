#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "driver/observer.h"
#include "model/breaker.h"
#include "model/component.h"
#include "model/provider_pause.h"
#include "model/resources.h"

namespace nodepool::launcher {

// The state of providers and pools, read-only: of this launcher's own, and of others as they announce them.

struct LabelStatus {
  LabelName name;
  bool is_available = false;         // a node could be launched, given capacity
  std::size_t free_nodes = 0;        // ready, for any request
  std::optional<std::string> fault;  // why none can be launched
};

// In all amounts, a resource that a limit does not name is unlimited.
struct PoolStatus {
  PoolName name;
  LauncherId launcher;  // as it is announced
  bool is_registered = false;
  bool is_draining = false;  // not configured any more
  bool is_waiting = false;   // an accepted request waits for capacity
  int priority = 100;
  std::optional<std::size_t> requests;  // accepted, not finished; not known of other launchers' pools
  Resources limit;
  Resources used;
  Resources reserved;                     // the part of it without a node yet: of launches that were decided
  std::map<std::string_view, int> nodes;  // by state
  std::vector<LabelStatus> labels;
};

// Whether a provider can be used (D-30).
struct ProviderHealth {
  bool is_up = false;
  bool was_up = false;   // it is, or it was before the fault
  WallTime since{};      // since when it is up, failing, or being started for the first time
  std::string fault;     // why it cannot be used; empty: it is up, or being started for the first time
  bool is_away = false;  // nodes cannot be launched because of it (driver::ProviderFault::is_outage)
  std::optional<SteadyTime> next_attempt;  // to use it, when that failed
};

struct ProviderStatus {
  ProviderName name;
  std::vector<std::string> launchers;  // hostnames of those that serve it, in order
  bool is_own = true;                  // this launcher serves it
  std::string driver;                  // empty: unknown
  ProviderState state = ProviderState::kStarting;
  WallTime since{};
  bool is_draining = false;  // not configured any more
  std::optional<ProviderPause> pause;
  std::vector<std::pair<BreakerKey, Breaker>> breakers;  // those that are open, the widest first
  ProviderHealth health;
  std::vector<std::string> notices;        // of what needs attention although it can be used
  std::vector<driver::ApiRate> api_rates;  // of its own: of services that have not borne all calls
  std::optional<Duration> next_start;      // until it is tried again
  int max_concurrency = -1;                // ≤ 0: unlimited, or not known
  int launches = 0;                        // in progress; of its own only
  Resources limit;                         // the cloud's, for this tenant; empty while unknown
  Resources used;
  Resources reserved;                     // as of pools
  std::map<std::string_view, int> nodes;  // by state
  std::vector<PoolStatus> pools;
};

}  // namespace nodepool::launcher
