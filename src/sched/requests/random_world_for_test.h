#pragma once

#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sched/requests/assign_for_test.h"

namespace nodepool::sched {

// A random snapshot: pools of two providers with limits, free nodes, pools of other launchers,
// limited tenants and waiting requests. It owns all input of a plan.
struct RandomWorld {
  std::vector<PoolView> pools;
  std::vector<RegisteredPool> registered;
  Registry registry;
  std::map<std::string, TenantView> tenants;
  std::deque<std::set<NodeId>> free_nodes;  // of one pool and label each
  std::map<RequestId, std::unique_ptr<NodeRequest>> requests;
  Queues queues;

  static RandomWorld Make() {
    RandomWorld world;
    int pool_count = *rc::gen::inRange(1, 5);
    for (int i = 0; i < pool_count; ++i) world.AddPool(i);
    if (*rc::gen::inRange(0, 3) == 0) world.AddForeignPool();
    world.registry = Registry(world.registered);
    if (*rc::gen::inRange(0, 2) == 0)
      world.tenants["limited"] = {{{"instances", *rc::gen::inRange(0, 6)}}, {{"instances", 1}}};
    int request_count = *rc::gen::inRange(0, 14);
    for (int i = 0; i < request_count; ++i) world.AddRequest(i);
    return world;
  }

  Snapshot TakeSnapshot() const { return {pools, &registry, tenants, &queues}; }

  PoolView& Pool(const PoolKey& key) {
    return *std::ranges::find_if(pools, [&](const PoolView& pool) { return pool.key == key; });
  }

  void AddRequest(int number) {
    auto request = std::make_unique<NodeRequest>();
    request->state = RequestState::kRequested;
    for (int k = *rc::gen::inRange(0, 4); k > 0; --k) {
      request->node_types.emplace_back(
          *rc::gen::element<std::string>("small", "small", "large", "odd", "foreign", "unknown"));
    }
    request->reuse = *rc::gen::arbitrary<bool>();
    request->relative_priority = *rc::gen::inRange(0, 3);
    if (*rc::gen::inRange(0, 3) == 0) request->tenant_name = "limited";
    if (*rc::gen::inRange(0, 8) == 0) request->requestor = std::string(kMinReadyRequestor);
    if (*rc::gen::inRange(0, 8) == 0)
      request->provider = ProviderName(*rc::gen::element<std::string>("p0", "p1", "elsewhere"));
    for (const RegisteredPool& pool : registered) {
      if (*rc::gen::inRange(0, 8) == 0) request->declined_by.push_back(pool.id);
    }
    RequestId id(fmt::format("{}-{:010}", *rc::gen::element(100, 200), number));
    queues.Put(id, *request);
    requests.emplace(std::move(id), std::move(request));
  }

 private:
  void AddPool(int number) {
    PoolView pool;
    pool.key = {ProviderName("p" + std::to_string(number % 2)), PoolName("n" + std::to_string(number))};
    pool.launcher = LauncherId("ours-" + std::to_string(number));
    pool.priority = *rc::gen::element(50, 100, 100);
    pool.is_disabled = *rc::gen::inRange(0, 8) == 0;
    pool.launches_nodes = *rc::gen::inRange(0, 6) != 0;
    pool.ignores_provider_quota = *rc::gen::inRange(0, 6) == 0;
    pool.pool.limit = {{"instances", *rc::gen::inRange(0, 6)}, {"cores", *rc::gen::inRange(0, 30)}};
    pool.pool.used = {{"instances", *rc::gen::inRange(0, 3)}};
    // What a provider has is the same for all its pools.
    pool.provider.limit = {{"instances", 5 + number % 2}, {"ram", 64}};
    pool.provider.used = {{"instances", 2}};
    pool.max_concurrency = number % 2 == 0 ? 0 : 3;
    pool.launches_in_progress = number % 2 == 0 ? 5 : 1;
    struct Offer {
      const char* label;
      Resources need;
    };
    const Offer offers[] = {{"small", {{"instances", 1}, {"cores", 2}, {"ram", 2}}},
                            {"large", {{"instances", 1}, {"cores", 8}, {"ram", 16}}},
                            {"odd", {{"instances", 1}, {"licences", 1}}}};
    for (const Offer& offer : offers) {
      if (*rc::gen::inRange(0, 4) == 0) continue;
      std::set<NodeId>& free = free_nodes.emplace_back();
      for (int i = *rc::gen::inRange(0, 3); i > 0; --i)
        free.insert(NodeId(fmt::format("{}-{}-{}", number, offer.label, i)));
      LabelView view{.need = offer.need,
                     .is_image_ready = *rc::gen::inRange(0, 8) != 0,
                     .is_broken = *rc::gen::inRange(0, 10) == 0,
                     .is_unknown = *rc::gen::inRange(0, 10) == 0,
                     .free_nodes = &free};
      pool.labels.emplace(LabelName(offer.label), view);
    }
    Register(pool.launcher, pool.key.provider, pool.priority, pool.labels);
    pools.push_back(std::move(pool));
  }

  void AddForeignPool() {
    std::map<LabelName, LabelView> labels = {{LabelName("small"), {}}, {LabelName("foreign"), {}}};
    Register(LauncherId("foreign"), ProviderName("elsewhere"), *rc::gen::element(50, 100), labels);
    registered.back().is_paused = *rc::gen::arbitrary<bool>();
  }

  void Register(LauncherId id, ProviderName provider, int priority,
                const std::map<LabelName, LabelView>& labels) {
    RegisteredPool pool{std::move(id), std::move(provider), priority, false, {}};
    for (const auto& [label, view] : labels) pool.labels.insert(label);
    registered.push_back(std::move(pool));
  }
};

}  // namespace nodepool::sched
