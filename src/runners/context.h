#pragma once

#include <functional>
#include <memory>
#include <string>

#include "async/loop.h"
#include "base/ids.h"
#include "base/log/logging.h"
#include "base/metrics.h"
#include "config/config.h"
#include "runners/node/runner_nodes.h"
#include "runners/scale_sets.h"
#include "store/cache/caches.h"
#include "store/store.h"

namespace nodepool::runners {

// What all sets of a daemon share. Everything outlives them.
struct Context {
  Loop& loop;
  Random& random;
  metrics::Metrics& metrics;
  store::Store& store;
  store::LeaseCache& leases;
  store::RunnerCache& runners;
  RunnerNodes& nodes;
  std::string hostname;
  std::string identity = {};  // of the tree: 6 hex digits
};

// A set as it is configured, with its service.
struct SetSettings {
  config::RunnerService service;  // without its sets
  config::RunnerSet set;
  bool is_draining = false;  // it is not configured any more
};

// What the parts of one set share; replaced in place by a reload. Read `settings` and `service` again after
// each await.
struct SetContext {
  Context& context;
  store::RunnerSetKey key;
  std::shared_ptr<const SetSettings> settings;
  std::shared_ptr<ScaleSets> service;
  log::Logger logger{"nodepool.runners"};
  WallTime kept_until{};  // until then the node of a failed job is held

  const config::RunnerSet& set() const { return settings->set; }
  std::string name() const { return key.str(); }
  // What the names of its runners begin with; 8 hex digits follow.
  std::string prefix() const { return "np" + context.identity + "-" + key.set + "-"; }
  // The client of its leases, as other parts show it.
  std::string client() const { return "runners:" + key.service; }
  std::string requestor() const { return "runners:" + key.str(); }
};

}  // namespace nodepool::runners
