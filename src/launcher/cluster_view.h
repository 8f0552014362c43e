#pragma once

#include "sched/requests/queues.h"
#include "sched/requests/registry.h"

namespace nodepool::launcher {

// What the decisions of all pools are based on; the Scheduler keeps it up to date.
struct ClusterView {
  sched::Registry registry;  // the pools of all launchers
  sched::Queues queues;      // the requests that no launcher has accepted
};

}  // namespace nodepool::launcher
