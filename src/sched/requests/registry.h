#pragma once

#include <map>
#include <set>
#include <vector>

#include "base/ids.h"
#include "model/node_request.h"

namespace nodepool::sched {

// A pool of any launcher, as its component record announces it.
struct RegisteredPool {
  LauncherId id;
  ProviderName provider;
  std::int64_t priority = 100;
  bool is_paused = false;
  std::set<LabelName> labels;
  PoolName name = {};                      // empty in announcements of old versions
  bool is_failing = false;                 // its launcher announces that it cannot use the provider
  bool is_provider_paused = false;         // by an operator
  bool heeds_breakers = true;              // not those of the Python implementation
  std::set<LabelName> broken_labels = {};  // those of `labels` whose breaker is open (breaker.md 3)
  bool operator==(const RegisteredPool&) const = default;
};

// All registered pools; a query needs no scan per request.
class Registry {
 public:
  explicit Registry(std::vector<RegisteredPool> pools = {});
  const std::vector<RegisteredPool>& pools() const { return pools_; }
  // Positions in `pools` of those that are paused.
  const std::vector<std::size_t>& paused() const { return paused_; }
  bool Contains(const LauncherId& id) const;

  // Pools that offer every label of the request and have not declined it.
  std::vector<const RegisteredPool*> Candidates(const NodeRequest& request) const;
  // Whether every pool has declined. False when no pool is registered: an empty view proves nothing
  // (launcher.md 9.3).
  bool AllDeclined(const NodeRequest& request) const;

 private:
  std::vector<RegisteredPool> pools_;
  std::vector<std::size_t> paused_;
  std::map<LabelName, std::vector<std::size_t>> by_label_;  // positions in order
};

}  // namespace nodepool::sched
