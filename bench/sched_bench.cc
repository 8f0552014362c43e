// The cost of one scheduling decision, by the number of waiting requests, of free
// nodes and of distinct shapes. It must not grow with the first two.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <memory>

#include "sched/requests/assigner.h"

namespace nodepool::sched {
namespace {

// `requests` requests of `shapes` shapes wait for a pool at its limit; `nodes` free
// nodes of another label lie there.
struct World {
  World(int requests, int shapes, int nodes) {
    PoolView pool;
    pool.key = {ProviderName("cloud"), PoolName("main")};
    pool.launcher = LauncherId("launcher");
    pool.is_waiting = true;
    pool.pool.limit = {{"instances", 1000}};
    pool.pool.used = {{"instances", 1000}};
    pool.pool.reserved = {"instances"};
    RegisteredPool registered{pool.launcher, pool.key.provider, 100, false, {}};
    for (int i = 0; i < shapes; ++i) {
      LabelName label(fmt::format("label-{}", i));
      pool.labels[label] = {{{"instances", 1}, {"cores", 4}, {"ram", 8192}}};
      registered.labels.insert(label);
    }
    for (int i = 0; i < nodes; ++i) free_nodes.insert(NodeId(fmt::format("{:010}", i)));
    pool.labels[LabelName("idle")].free_nodes = &free_nodes;
    registry = Registry({registered});
    pools = {std::move(pool)};
    for (int i = 0; i < requests; ++i) {
      auto request = std::make_unique<NodeRequest>();
      request->state = RequestState::kRequested;
      request->node_types = {LabelName(fmt::format("label-{}", i % shapes))};
      queues.Put(RequestId(fmt::format("200-{:010}", i)), *request);
      records.push_back(std::move(request));
    }
  }

  std::set<NodeId> free_nodes;
  std::vector<PoolView> pools;
  std::vector<std::unique_ptr<NodeRequest>> records;
  std::map<std::string, TenantView> tenants;
  Registry registry;
  Queues queues;
};

// By one that knows nothing yet.
Plan DecideAnew(auto& world, const Portion& portion = {}) {
  Assigner assigner(world.queues, world.registry);
  assigner.SetPools(world.pools);
  assigner.SetTenants(world.tenants);
  return assigner.Decide(portion);
}

void BM_AssignNothingFits(benchmark::State& state) {
  World world(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)),
              static_cast<int>(state.range(2)));
  for (auto _ : state) {
    Plan plan = DecideAnew(world);
    benchmark::DoNotOptimize(plan);
  }
}
BENCHMARK(BM_AssignNothingFits)
    ->ArgNames({"requests", "shapes", "nodes"})
    ->Args({100, 10, 100})
    ->Args({1000, 10, 100})
    ->Args({10000, 10, 100})
    ->Args({10000, 10, 10000})
    ->Args({10000, 100, 10000});

// A portion of a decision, as the launcher's.
void BM_AssignPortion(benchmark::State& state) {
  World world(static_cast<int>(state.range(0)), static_cast<int>(state.range(0)), 100);
  for (auto _ : state) {
    Plan plan = DecideAnew(world, {{}, 50'000});
    benchmark::DoNotOptimize(plan);
  }
}
BENCHMARK(BM_AssignPortion)
    ->ArgName("shapes")
    ->Arg(1000)
    ->Arg(20000)
    ->Arg(100000)
    ->Unit(benchmark::kMillisecond);

void BM_AssignEverythingFits(benchmark::State& state) {
  World world(static_cast<int>(state.range(0)), 10, 100);
  world.pools[0].is_waiting = false;
  world.pools[0].pool = {};
  for (auto _ : state) {
    Plan plan = DecideAnew(world);
    benchmark::DoNotOptimize(plan);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_AssignEverythingFits)->ArgName("requests")->Arg(100)->Arg(1000)->Arg(10000);

// Of `pools` pools, each of which offers ten of 50 labels; requests of `shapes` shapes wait for their
// tenants.
struct ManyPools {
  ManyPools(int pool_count, int shapes) {
    std::vector<RegisteredPool> registered;
    for (int i = 0; i < pool_count; ++i) {
      PoolView pool;
      pool.key = {ProviderName(fmt::format("cloud-{}", i % 20)), PoolName(fmt::format("pool-{}", i / 20))};
      pool.launcher = LauncherId(fmt::format("launcher-{}", i));
      RegisteredPool announced{pool.launcher, pool.key.provider, 100, false, {}};
      for (int each = 0; each < 10; ++each) {
        LabelName label(fmt::format("label-{}", (i / 20 * 10 + each) % 50));
        pool.labels[label] = {{{"instances", 1}, {"cores", 4}, {"ram", 8192}}};
        pool.labels[label].free_nodes = &no_nodes;
        announced.labels.insert(label);
      }
      pools.push_back(std::move(pool));
      registered.push_back(std::move(announced));
    }
    registry = Registry(std::move(registered));
    for (int i = 0; i < shapes; ++i) {
      auto request = std::make_unique<NodeRequest>();
      request->state = RequestState::kRequested;
      request->node_types = {LabelName(fmt::format("label-{}", i % 50))};
      request->tenant_name = fmt::format("tenant-{}", i / 50);
      tenants[*request->tenant_name] = {{{"instances", 1}}, {{"instances", 1}}};
      queues.Put(RequestId(fmt::format("200-{:010}", i)), *request);
      records.push_back(std::move(request));
    }
  }

  std::set<NodeId> no_nodes;
  std::vector<PoolView> pools;
  std::vector<std::unique_ptr<NodeRequest>> records;
  std::map<std::string, TenantView> tenants;
  Registry registry;
  Queues queues;
};

void BM_AssignOfManyPools(benchmark::State& state) {
  ManyPools world(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  for (auto _ : state) {
    Plan plan = DecideAnew(world);
    benchmark::DoNotOptimize(plan);
  }
}
BENCHMARK(BM_AssignOfManyPools)
    ->ArgNames({"pools", "shapes"})
    ->Args({20, 100})
    ->Args({200, 100})
    ->Args({600, 100})
    ->Unit(benchmark::kMillisecond);

// One request more, like others that wait; `change`: and of a pool something else is used.
void BM_AssignAgain(benchmark::State& state) {
  ManyPools world(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  Assigner assigner(world.queues, world.registry);
  assigner.SetPools(world.pools);
  assigner.SetTenants(world.tenants);
  assigner.Decide();
  NodeRequest request = *world.records.front();
  RequestId id("300-0000000000");
  for (auto _ : state) {
    world.queues.Put(id, request);
    if (state.range(2) != 0) {
      world.pools[0].pool.used["instances"] += 1;
      assigner.SetPool(0, world.pools[0], false);
    }
    Plan plan = assigner.Decide();
    benchmark::DoNotOptimize(plan);
    world.queues.Remove(id);
  }
}
BENCHMARK(BM_AssignAgain)
    ->ArgNames({"pools", "shapes", "change"})
    ->Args({200, 100, 0})
    ->Args({600, 1000, 0})
    ->Args({200, 100, 1})
    ->Args({600, 1000, 1});

// A request comes and is accepted at once, in a launcher of so many pools that nothing else waits for.
void BM_RequestThatFits(benchmark::State& state) {
  ManyPools world(static_cast<int>(state.range(0)), 0);
  Assigner assigner(world.queues, world.registry);
  assigner.SetPools(world.pools);
  NodeRequest request;
  request.state = RequestState::kRequested;
  request.node_types = {LabelName("label-0")};
  RequestId id("300-0000000000");
  for (auto _ : state) {
    world.queues.Put(id, request);
    for (std::size_t i = 0; i < world.pools.size(); ++i) assigner.SetPool(i, world.pools[i], true);
    Plan plan = assigner.Decide();
    benchmark::DoNotOptimize(plan);
    world.queues.Remove(id);
  }
}
BENCHMARK(BM_RequestThatFits)->ArgName("pools")->Arg(1)->Arg(20)->Arg(200);

void BM_QueueChange(benchmark::State& state) {
  World world(static_cast<int>(state.range(0)), 10, 0);
  NodeRequest request;
  request.state = RequestState::kRequested;
  request.node_types = {LabelName("label-0")};
  RequestId id("100-0000000000");
  for (auto _ : state) {
    world.queues.Put(id, request);
    world.queues.Remove(id);
  }
}
BENCHMARK(BM_QueueChange)->ArgName("requests")->Arg(100)->Arg(10000);

}  // namespace
}  // namespace nodepool::sched

BENCHMARK_MAIN();
