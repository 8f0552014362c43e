#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <memory>

#include "model/node.h"
#include "sched/requests/assign_for_test.h"

namespace nodepool::sched {
namespace {

const PoolKey kMain{ProviderName("cloud"), PoolName("main")};

NodeRequest Request(std::vector<std::string> labels) {
  NodeRequest request;
  request.state = RequestState::kRequested;
  for (std::string& label : labels) request.node_types.emplace_back(std::move(label));
  return request;
}

PoolView Pool(PoolKey key = kMain) {
  PoolView pool;
  pool.key = key;
  pool.launcher = LauncherId(key.provider.value + "-" + key.pool.value);
  pool.labels[LabelName("small")] = {{{"instances", 1}, {"cores", 2}}};
  pool.labels[LabelName("large")] = {{{"instances", 1}, {"cores", 8}}};
  return pool;
}

RegisteredPool Registered(const PoolView& pool) {
  RegisteredPool registered{pool.launcher, pool.key.provider, pool.priority, false, {}};
  for (const auto& [label, view] : pool.labels) registered.labels.insert(label);
  return registered;
}

class ConsiderTest : public ::testing::Test {
 protected:
  Decision Decide(const NodeRequest& request) {
    std::vector<RegisteredPool> all = others;
    all.push_back(Registered(pool));
    return Consider(pool, Registry(all), tenant ? &*tenant : nullptr, request);
  }
  Reason Why(const NodeRequest& request) { return Decide(request).reason; }

  PoolView pool = Pool();
  std::set<NodeId> one_node = {NodeId("1")};
  std::vector<RegisteredPool> others;
  std::optional<TenantView> tenant;
};

RegisteredPool Foreign(std::string provider, std::set<LabelName> labels, std::int64_t priority = 100) {
  return {LauncherId("foreign-" + provider), ProviderName(provider), priority, false, std::move(labels)};
}

TEST_F(ConsiderTest, AcceptsWhatFits) {
  EXPECT_EQ(Decide(Request({"small", "large"})).kind, Decision::Kind::kAccept);
}

TEST_F(ConsiderTest, EmptyRequestIsAccepted) {  // BB-01
  EXPECT_EQ(Decide(Request({})).kind, Decision::Kind::kAccept);
}

TEST_F(ConsiderTest, OnlyRequestedOnesAndNotTwice) {
  NodeRequest request = Request({"small"});
  request.state = RequestState::kPending;
  EXPECT_EQ(Why(request), Reason::kNotRequested);
  request.state = RequestState::kRequested;
  request.declined_by = {pool.launcher};
  EXPECT_EQ(Why(request), Reason::kDeclinedBefore);
}

// Otherwise each would leave the request to the other for ever.
TEST_F(ConsiderTest, PreferredPoolOfAnUnwantedProviderIsNotWaitedFor) {
  NodeRequest request = Request({"small"});
  request.provider = pool.key.provider;
  others = {Foreign("elsewhere", {LabelName("small")}, 1)};
  EXPECT_EQ(Decide(request).kind, Decision::Kind::kAccept);
  request.provider = ProviderName();
  EXPECT_EQ(Why(request), Reason::kPreferredPool);
}

// Two workers that hold nodes while each waits for the other's would wait for ever.
TEST_F(ConsiderTest, ASecondRequestDoesNotWaitWhereOneWaits) {
  RegisteredPool sibling{LauncherId("sibling"), pool.key.provider, 100, true, {}, PoolName("second")};
  others = {sibling};
  pool.provider.limit = {{"instances", 1}};
  pool.provider.used = {{"instances", 1}};
  EXPECT_EQ(Why(Request({"small"})), Reason::kCapacityReserved) << "another pool of the provider";
  pool.provider.used.clear();
  EXPECT_EQ(Decide(Request({"small"})).kind, Decision::Kind::kAccept) << "it has all that it needs";
  NodeRequest min_ready = Request({"small"});
  min_ready.requestor = std::string(kMinReadyRequestor);
  EXPECT_EQ(Why(min_ready), Reason::kCapacityReserved) << "it comes after everybody who waits";
  others.front().name = pool.key.pool;
  EXPECT_EQ(Why(Request({"small"})), Reason::kCapacityReserved) << "the same pool of another launcher";
  others.front().is_paused = false;
  EXPECT_EQ(Decide(Request({"small"})).kind, Decision::Kind::kAccept);
}

TEST_F(ConsiderTest, ARequestedProviderBindsWhileItCanServe) {  // coordination.17.13, LA-31..33
  NodeRequest request = Request({"small"});
  request.provider = ProviderName("elsewhere");
  EXPECT_EQ(Decide(request).kind, Decision::Kind::kAccept) << "no pool of that provider is registered";
  others = {Foreign("elsewhere", {LabelName("small")})};
  EXPECT_EQ(Why(request), Reason::kOtherProviderWanted);
  request.declined_by = {others[0].id};
  EXPECT_EQ(Decide(request).kind, Decision::Kind::kAccept);
  others = {Foreign("elsewhere", {LabelName("other")})};
  request.declined_by.clear();
  EXPECT_EQ(Decide(request).kind, Decision::Kind::kAccept);
}

TEST_F(ConsiderTest, YieldsToASmallerPriorityNumberUnlessPaused) {  // coordination.17.12, BB-05
  others = {Foreign("preferred", {LabelName("small")}, 50)};
  EXPECT_EQ(Why(Request({"small"})), Reason::kPreferredPool);
  others[0].is_paused = true;
  EXPECT_EQ(Decide(Request({"small"})).kind, Decision::Kind::kAccept);
  others[0] = Foreign("equal", {LabelName("small")}, 100);
  EXPECT_EQ(Decide(Request({"small"})).kind, Decision::Kind::kAccept);
}

TEST_F(ConsiderTest, LeavesMissingLabelsToOthersThenDeclines) {  // coordination.17.11, BB-04
  others = {Foreign("other", {LabelName("exotic")})};
  NodeRequest request = Request({"exotic"});
  EXPECT_EQ(Why(request), Reason::kOthersCanServe);
  request.declined_by = {others[0].id};
  Decision decision = Decide(request);
  EXPECT_EQ(decision.kind, Decision::Kind::kDecline);
  EXPECT_EQ(decision.reason, Reason::kLabelNotAvailable);
  EXPECT_EQ(decision.detail, "exotic");
}

TEST_F(ConsiderTest, DeclineReasonsInTheirOrder) {  // launcher.md 9.2
  NodeRequest request = Request({"small"});
  pool.pool.limit = {{"cores", 1}};
  EXPECT_EQ(Why(request), Reason::kExceedsQuota);
  pool.labels[LabelName("small")].is_image_ready = false;
  EXPECT_EQ(Why(request), Reason::kImageNotAvailable);
  pool.labels[LabelName("small")].is_unknown = true;
  EXPECT_EQ(Why(request), Reason::kProviderFault);
  EXPECT_EQ(Decide(request).kind, Decision::Kind::kDefer) << "D-26";
  pool.provider_fault = "the cloud refuses the login";
  EXPECT_EQ(Why(request), Reason::kProviderUnusable);
  EXPECT_EQ(Decide(request).kind, Decision::Kind::kDefer) << "D-30";
  EXPECT_EQ(Decide(request).detail, "the cloud refuses the login");
  pool.labels[LabelName("small")].is_broken = true;
  EXPECT_EQ(Why(request), Reason::kLabelNotAvailable);
  pool.paused_by = "alice";
  EXPECT_EQ(Why(request), Reason::kProviderPaused) << "ACT-3";
  EXPECT_EQ(Decide(request).kind, Decision::Kind::kDecline);
  EXPECT_EQ(Decide(request).detail, "alice");
  pool.is_disabled = true;
  EXPECT_EQ(Why(request), Reason::kPoolDisabled);
}

TEST_F(ConsiderTest, SizeCheckIgnoresUsage) {  // BB-37
  pool.pool.limit = {{"instances", 1}};
  pool.pool.used = {{"instances", 1}};
  EXPECT_EQ(Why(Request({"small", "small"})), Reason::kExceedsQuota);
  EXPECT_EQ(Decide(Request({"small"})).kind, Decision::Kind::kAccept) << "it waits as pending";
}

TEST_F(ConsiderTest, WhatOthersUseIsWaitedForWhereItIsFollowed) {  // drivers.md 2.5, K8S-85
  double need = pool.labels.at(LabelName("small")).need.at("cores");
  pool.provider.limit = {{"cores", need - 1}};
  pool.provider.others = {{"cores", 1}};
  EXPECT_EQ(Why(Request({"small"})), Reason::kExceedsQuota);
  pool.waits_for_others = true;
  EXPECT_EQ(Decide(Request({"small"})).kind, Decision::Kind::kAccept);
  EXPECT_TRUE(Decide(Request({"small"})).must_wait);
  EXPECT_EQ(Why(Request({"small", "small"})), Reason::kExceedsQuota) << "the limits themselves are too small";
}

TEST_F(ConsiderTest, ProviderQuotaMayBeIgnored) {  // LA-83, LA-84
  pool.provider.limit = {{"cores", 0}};
  EXPECT_EQ(Why(Request({"small"})), Reason::kExceedsQuota);
  pool.ignores_provider_quota = true;
  EXPECT_EQ(Decide(Request({"small"})).kind, Decision::Kind::kAccept);
}

TEST_F(ConsiderTest, WhereTheQuotaIsIgnoredTurnsCountOnceTheCloudRefuses) {  // D-33
  pool.ignores_provider_quota = true;
  pool.provider.limit = {{"cores", 0}};
  pool.provider.reserved = {"cores"};
  others = {Foreign("elsewhere", {LabelName("small")})};
  others.front().provider = pool.key.provider;
  others.front().is_paused = true;
  EXPECT_EQ(Decide(Request({"small"})).kind, Decision::Kind::kAccept);
  pool.is_cloud_full = true;
  EXPECT_EQ(Why(Request({"small"})), Reason::kCapacityReserved);
  pool.provider.reserved.clear();
  EXPECT_EQ(Why(Request({"small"})), Reason::kCapacityReserved)
      << "the record does not say what others wait for";
  others.front().is_paused = false;
  EXPECT_EQ(Decide(Request({"small"})).kind, Decision::Kind::kAccept) << "how much there is remains unknown";
}

TEST_F(ConsiderTest, NothingIsTakenFromAnEarlierWaiter) {  // D-33
  pool.is_waiting = true;
  pool.pool.limit = {{"cores", 10}};
  pool.pool.used = {{"cores", 4}};
  pool.pool.reserved = {"cores"};
  EXPECT_EQ(Why(Request({"small"})), Reason::kCapacityReserved);
  pool.labels[LabelName("coreless")] = {{{"instances", 1}}};
  EXPECT_EQ(Decide(Request({"coreless"})).kind, Decision::Kind::kAccept);
  pool.labels[LabelName("small")].free_nodes = &one_node;
  EXPECT_EQ(Decide(Request({"small"})).kind, Decision::Kind::kAccept) << "a free node takes no capacity";
}

TEST_F(ConsiderTest, TenantLimitDefersAndCountsFreeNodesAsNeed) {  // LA-08, LA-13
  tenant = TenantView{{{"instances", 2}}, {{"instances", 2}}};
  NodeRequest request = Request({"small"});
  request.tenant_name = "tenant-1";
  pool.labels[LabelName("small")].free_nodes = &one_node;
  EXPECT_EQ(Why(request), Reason::kTenantLimit);
  tenant->used = {{"instances", 1}};
  EXPECT_EQ(Decide(request).kind, Decision::Kind::kAccept);
}

TEST_F(ConsiderTest, PoolThatLaunchesNothingWaitsForAllItsNodes) {  // D-25, S-waiting
  pool.launches_nodes = false;
  EXPECT_EQ(Why(Request({"small"})), Reason::kNoFreeNode);
  pool.labels[LabelName("small")].free_nodes = &one_node;
  EXPECT_EQ(Decide(Request({"small"})).kind, Decision::Kind::kAccept);
  EXPECT_EQ(Why(Request({"small", "small"})), Reason::kNoFreeNode);
}

TEST_F(ConsiderTest, MaxConcurrencyCountsNodes) {  // D-20
  pool.max_concurrency = 3;
  pool.launches_in_progress = 2;
  EXPECT_EQ(Decide(Request({"small"})).kind, Decision::Kind::kAccept);
  EXPECT_EQ(Why(Request({"small", "small"})), Reason::kLaunchesInProgress);
  pool.launches_in_progress = 0;
  EXPECT_EQ(Decide(Request({"small", "small", "small", "small"})).kind, Decision::Kind::kAccept)
      << "a request larger than the limit is served alone rather than never";
  pool.max_concurrency = 0;
  pool.launches_in_progress = 1000;
  EXPECT_EQ(Decide(Request({"small"})).kind, Decision::Kind::kAccept);
}

TEST(RegistryTest, AllDeclinedNeedsAPool) {
  NodeRequest request = Request({"small"});
  EXPECT_FALSE(Registry().AllDeclined(request));
  Registry registry({Registered(Pool())});
  EXPECT_FALSE(registry.AllDeclined(request));
  request.declined_by = {Pool().launcher, LauncherId("dead one")};
  EXPECT_TRUE(registry.AllDeclined(request));
}

class AssignTest : public ::testing::Test {
 protected:
  void AddRequest(std::string id, NodeRequest request) {
    records.push_back(std::make_unique<NodeRequest>(std::move(request)));
    queues.Put(RequestId(std::move(id)), *records.back());
  }
  FreshPlan Run() {
    std::vector<RegisteredPool> registered;
    for (const PoolView& pool : pools) registered.push_back(Registered(pool));
    registry = Registry(registered);
    return Assign({pools, &registry, tenants, &queues});
  }
  std::vector<std::string> Accepted() {
    std::vector<std::string> ids;
    for (const Plan::Acceptance& acceptance : Run().accept) ids.push_back(acceptance.request.value);
    return ids;
  }

  std::vector<PoolView> pools = {Pool()};
  std::set<NodeId> one_node = {NodeId("1")};
  std::map<std::string, TenantView> tenants;
  std::vector<std::unique_ptr<NodeRequest>> records;
  Queues queues;
  Registry registry;
};

TEST_F(AssignTest, ServesInOrder) {  // BB-03, LA-87
  NodeRequest urgent = Request({"small"});
  urgent.relative_priority = -1;
  NodeRequest later = Request({"small"});
  later.relative_priority = 50;
  AddRequest("200-0000000001", Request({"small"}));
  AddRequest("200-0000000002", urgent);
  AddRequest("100-0000000003", later);
  AddRequest("200-0000000000", Request({"large"}));
  EXPECT_EQ(Accepted(), (std::vector<std::string>{"100-0000000003", "200-0000000002", "200-0000000000",
                                                  "200-0000000001"}));
}

TEST_F(AssignTest, TheFirstThatDoesNotFitIsAcceptedAndWaitsTheNextIsDeferred) {  // LA-03
  pools[0].pool.limit = {{"instances", 2}};
  AddRequest("200-0000000001", Request({"small", "small"}));
  AddRequest("200-0000000002", Request({"small", "small"}));
  AddRequest("200-0000000003", Request({"small"}));
  FreshPlan plan = Run();
  EXPECT_EQ(plan.accept.size(), 2u);
  Answers why = plan.waiting.at(ShapeOf(Request({"small"})));
  ASSERT_EQ(why.size(), 1u);
  EXPECT_EQ(why[0].second.reason, Reason::kCapacityReserved);
  EXPECT_EQ(why[0].second.detail, "instances");
}

TEST_F(AssignTest, AFreeNodeIsGivenOnce) {
  pools[0].launches_nodes = false;
  pools[0].labels[LabelName("small")].free_nodes = &one_node;
  pools[0].labels[LabelName("large")].free_nodes = &one_node;
  AddRequest("200-0000000001", Request({"small"}));
  AddRequest("200-0000000002", Request({"large"}));
  EXPECT_EQ(Accepted(), (std::vector<std::string>{"200-0000000001"}));
}

TEST_F(AssignTest, EveryRequestOfADeclinedShapeIsDeclined) {  // LA-25
  AddRequest("200-0000000001", Request({"unknown"}));
  AddRequest("200-0000000002", Request({"unknown"}));
  FreshPlan plan = Run();
  ASSERT_EQ(plan.decline.size(), 2u);
  EXPECT_EQ(plan.decline[0].by[0].second.reason, Reason::kLabelNotAvailable);
}

TEST_F(AssignTest, ARequestThatAllPoolsDeclinedFails) {  // D-23
  NodeRequest request = Request({"small"});
  request.declined_by = {pools[0].launcher};
  AddRequest("200-0000000001", request);
  FreshPlan plan = Run();
  ASSERT_EQ(plan.decline.size(), 1u);
  EXPECT_TRUE(plan.decline[0].by.empty());
}

TEST_F(AssignTest, WaitingForThePoolsOwnLimitLeavesOtherPoolsOfTheProviderAlone) {
  pools.push_back(Pool({ProviderName("cloud"), PoolName("second")}));
  pools[0].pool.limit = {{"instances", 1}};
  pools[0].pool.used = {{"instances", 1}};
  pools[1].labels[LabelName("extra")] = {{{"instances", 1}}};
  AddRequest("200-0000000001", Request({"small"}));
  AddRequest("200-0000000002", Request({"extra"}));
  EXPECT_EQ(Accepted().size(), 2u);
}

TEST_F(AssignTest, AwaitedCapacityIsReservedInAllPoolsOfTheProvider) {
  pools.push_back(Pool({ProviderName("cloud"), PoolName("second")}));
  pools.push_back(Pool({ProviderName("other"), PoolName("main")}));
  for (PoolView* pool : {&pools[0], &pools[1]}) {
    pool->provider.limit = {{"cores", 8}};
    pool->provider.used = {{"cores", 2}};
  }
  for (PoolView* pool : {&pools[1], &pools[2]}) pool->labels.erase(LabelName("large"));
  AddRequest("200-0000000001", Request({"large"}));
  AddRequest("200-0000000002", Request({"small"}));
  FreshPlan plan = Run();
  ASSERT_EQ(plan.accept.size(), 2u);
  EXPECT_EQ(plan.accept[0].pool, kMain);
  EXPECT_EQ(plan.accept[1].pool, pools[2].key) << "the cores that are left are kept for the first";
}

TEST_F(AssignTest, PoolThatCanServeAtOnceGoesBeforeOneThatWouldWait) {
  pools.push_back(Pool({ProviderName("other"), PoolName("main")}));
  for (PoolView& pool : pools) pool.pool.limit = {{"instances", 1}};
  pools[0].pool.used = {{"instances", 1}};
  AddRequest("200-0000000001", Request({"small"}));
  AddRequest("200-0000000002", Request({"small"}));
  FreshPlan plan = Run();
  ASSERT_EQ(plan.accept.size(), 2u);
  EXPECT_EQ(plan.accept[0].pool, pools[1].key);
  EXPECT_EQ(plan.accept[1].pool, kMain) << "the first of those that would wait";
}

TEST_F(AssignTest, JustAcceptedRequestsCountAgainstTheTenantsLimit) {  // LA-09
  tenants["t"] = {{{"instances", 3}}, {}};
  for (int i = 0; i < 3; ++i) {
    NodeRequest request = Request({"small", "small"});
    if (i < 2) request.tenant_name = "t";
    AddRequest("200-000000000" + std::to_string(i), request);
  }
  EXPECT_EQ(Accepted(), (std::vector<std::string>{"200-0000000000", "200-0000000002"}));
}

TEST(QueuesTest, HoldsWaitingRequestsOnly) {
  Queues queues;
  NodeRequest request = Request({"small"});
  queues.Put(RequestId("200-0000000001"), request);
  queues.Put(RequestId("200-0000000001"), request);
  queues.Put(RequestId("malformed"), request);
  EXPECT_EQ(queues.size(), 1u);
  request.state = RequestState::kPending;
  queues.Put(RequestId("200-0000000001"), request);
  EXPECT_EQ(queues.size(), 0u);
  EXPECT_TRUE(queues.shapes().empty());
  queues.Remove(RequestId("200-0000000001"));
}

// Random worlds: whatever the requests and limits, the plan has these properties.
struct RandomWorld {
  std::vector<PoolView> pools;
  std::vector<std::set<NodeId>> free_nodes;
  std::map<RequestId, std::unique_ptr<NodeRequest>> requests;
  Registry registry;
  Queues queues;

  static RandomWorld Make() {
    RandomWorld world;
    int pool_count = *rc::gen::inRange(1, 4);
    world.free_nodes.resize(static_cast<std::size_t>(pool_count));
    std::vector<RegisteredPool> registered;
    for (int i = 0; i < pool_count; ++i) {
      PoolView pool = Pool({ProviderName("p" + std::to_string(i % 2)), PoolName("n" + std::to_string(i))});
      pool.pool.limit = {{"instances", *rc::gen::inRange(0, 6)}, {"cores", *rc::gen::inRange(0, 40)}};
      pool.provider.limit = {{"instances", 4 + i % 2}};
      auto& free = world.free_nodes[static_cast<std::size_t>(i)];
      for (int k = *rc::gen::inRange(0, 3); k > 0; --k) free.insert(NodeId(std::to_string(i * 10 + k)));
      pool.labels[LabelName("small")].free_nodes = &free;
      registered.push_back(Registered(pool));
      world.pools.push_back(std::move(pool));
    }
    world.registry = Registry(registered);
    int request_count = *rc::gen::inRange(0, 12);
    for (int i = 0; i < request_count; ++i) {
      std::vector<std::string> labels;
      for (int k = *rc::gen::inRange(0, 4); k > 0; --k) {
        labels.push_back(*rc::gen::element<std::string>("small", "large", "unknown"));
      }
      auto request = std::make_unique<NodeRequest>(Request(labels));
      request->reuse = *rc::gen::arbitrary<bool>();
      RequestId id(fmt::format("{}-{:010}", i % 3 == 0 ? 100 : 200, i));
      world.queues.Put(id, *request);
      world.requests.emplace(id, std::move(request));
    }
    return world;
  }
};

TEST(AssignPropertyTest, NeverTwoOwnersNeverOverQuotaOneWaiterPerPool) {
  EXPECT_TRUE(rc::check([] {
    RandomWorld world = RandomWorld::Make();
    FreshPlan plan = Assign({world.pools, &world.registry, {}, &world.queues});
    std::set<RequestId> owned;
    std::set<NodeId> taken;
    std::set<PoolKey> waits;
    for (const Plan::Acceptance& acceptance : plan.accept) {
      RC_ASSERT(owned.insert(acceptance.request).second);
      PoolView& pool = *std::find_if(world.pools.begin(), world.pools.end(),
                                     [&](const PoolView& view) { return view.key == acceptance.pool; });
      const NodeRequest& request = *world.requests[acceptance.request];
      FillPlan fill = PlanFill(pool, MissingLabels(request.node_types, {}), request.reuse, taken);
      if (!fill.wait.empty()) RC_ASSERT(waits.insert(pool.key).second);
      for (const auto& reuse : fill.reuse) RC_ASSERT(taken.insert(reuse.node).second);
      for (const LabelName& label : fill.launch) {
        for (PoolView& sibling : world.pools) {
          if (sibling.key.provider == pool.key.provider) Add(sibling.provider.used, pool.labels[label].need);
        }
        Add(pool.pool.used, pool.labels[label].need);
      }
      for (const auto& [resource, amount] : fill.pool_shortage) pool.pool.reserved.insert(resource);
      for (PoolView& sibling : world.pools) {
        if (sibling.key.provider != pool.key.provider) continue;
        for (const auto& [resource, amount] : fill.provider_shortage)
          sibling.provider.reserved.insert(resource);
      }
      for (const auto& [resource, limit] : pool.pool.limit) RC_ASSERT(pool.pool.used[resource] <= limit);
      for (const auto& [resource, limit] : pool.provider.limit)
        RC_ASSERT(pool.provider.used[resource] <= limit);
    }
  }));
}

TEST(AssignPropertyTest, EveryRequestIsConsideredInOrderWithinItsShape) {
  EXPECT_TRUE(rc::check([] {
    RandomWorld world = RandomWorld::Make();
    FreshPlan plan = Assign({world.pools, &world.registry, {}, &world.queues});
    std::set<RequestId> decided;
    for (const auto& acceptance : plan.accept) decided.insert(acceptance.request);
    for (const auto& declination : plan.decline) RC_ASSERT(decided.insert(declination.request).second);
    for (const auto& [shape, line] : world.queues.shapes()) {
      bool rest_waits = false;
      for (const auto& [order, waiting] : line.requests) {
        if (!decided.contains(waiting.id)) rest_waits = true;
        // Once one request of a shape waits, all later ones of it wait as well.
        RC_ASSERT(decided.contains(waiting.id) != rest_waits);
      }
      RC_ASSERT(plan.waiting.contains(shape) == rest_waits);
    }
  }));
}

}  // namespace
}  // namespace nodepool::sched
