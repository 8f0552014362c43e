#pragma once

#include "sched/requests/assign.h"
#include "sched/requests/queues.h"

namespace nodepool::launcher {

// What the decisions of all pools rest on; the Scheduler keeps it up to date.
struct ClusterView {
  sched::Registry registry;  // the pools of all launchers
  sched::Queues queues;      // the requests that no launcher has accepted
};

}  // namespace nodepool::launcher
