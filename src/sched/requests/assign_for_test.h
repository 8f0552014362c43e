#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sched/requests/assigner.h"

namespace nodepool::sched {

struct Snapshot {
  std::vector<PoolView> pools;  // of this launcher
  const Registry* registry = nullptr;
  std::map<std::string, TenantView> tenants;  // those with limits
  const Queues* queues = nullptr;
};

struct FreshPlan : Plan {
  // For each shape whose requests continue to wait: the answers of all pools.
  std::map<Shape, Answers> waiting;
};

// What an Assigner decides that knows nothing yet. It changes nothing.
inline FreshPlan Assign(Snapshot snapshot, const Portion& portion = {}) {
  Queues queues;
  for (const auto& [shape, line] : snapshot.queues->shapes()) {
    for (const auto& [order, waiting] : line.requests) queues.Put(waiting.id, *waiting.request);
  }
  Assigner assigner(queues, *snapshot.registry);
  assigner.SetPools(std::move(snapshot.pools));
  assigner.SetTenants(std::move(snapshot.tenants));
  FreshPlan plan{assigner.Decide(portion), {}};
  for (const auto& [shape, line] : queues.shapes()) {
    if (line.is_waiting) plan.waiting.emplace(shape, line.answers);
  }
  return plan;
}

}  // namespace nodepool::sched
