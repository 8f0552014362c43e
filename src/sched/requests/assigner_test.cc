#include "sched/requests/assigner.h"

#include <gtest/gtest.h>

#include "base/testing/test_environment.h"
#include "sched/requests/assign_for_test.h"
#include "sched/requests/random_world_for_test.h"

namespace nodepool::sched {

namespace {

// A random world that changes, and an Assigner that is given each change.
class ChangingWorld {
 public:
  ChangingWorld() {
    assigner_.SetPools(world_.pools);
    assigner_.SetTenants(world_.tenants);
    // Later ones have larger numbers.
    next_request_ = 100;
  }

  void Change() {
    switch (*rc::gen::inRange(0, 12)) {
      case 0:
      case 1:
        return AddRequest();
      case 2:
        return RemoveRequest();
      case 3:
        return ChangeRequest();
      case 4:
        return ChangeFreeNodes();
      case 5:
        return ChangeTenant();
      case 6:
        return ChangeRegistry();
      case 7:
        return ChangeLabel();
      case 8:
      case 9:
        return ChangeUse();
      default:
        return ChangePool();
    }
  }

  // Decides, and compares with one that knows nothing.
  void Decide() {
    FreshPlan expected = Assign(world_.TakeSnapshot());
    Plan plan = assigner_.Decide();
    RC_ASSERT(!plan.continues_after);
    RC_ASSERT(plan.accept.size() == expected.accept.size());
    for (std::size_t i = 0; i < plan.accept.size(); ++i) {
      RC_ASSERT(plan.accept[i].request == expected.accept[i].request);
      RC_ASSERT(plan.accept[i].pool == expected.accept[i].pool);
      RC_ASSERT(plan.accept[i].standing == expected.accept[i].standing);
    }
    RC_ASSERT(plan.decline.size() == expected.decline.size());
    for (std::size_t i = 0; i < plan.decline.size(); ++i) {
      RC_ASSERT(plan.decline[i].request == expected.decline[i].request);
      RC_ASSERT(plan.decline[i].by == expected.decline[i].by);
    }
    for (const auto& [shape, answers] : expected.waiting) {
      const Answers* known = world_.queues.WaitingOf(shape);
      RC_ASSERT(known != nullptr);
      RC_ASSERT(*known == answers);
    }
    for (const Plan::Acceptance& acceptance : plan.accept) world_.queues.Remove(acceptance.request);
    for (const Plan::Declination& declination : plan.decline) world_.queues.Remove(declination.request);
    bool is_at_fault = false;
    std::map<Shape, std::vector<Reason>> reasons;
    for (const auto& [shape, line] : world_.queues.shapes()) {
      RC_ASSERT(line.is_waiting);
      for (const auto& [pool, decision] : line.answers) is_at_fault |= IsProviderFault(decision.reason);
      reasons.emplace(shape, ReasonsOf(line.answers));
    }
    RC_ASSERT(world_.queues.IsProviderAtFault() == is_at_fault);
    FollowChanges();
    RC_ASSERT(reasons_ == reasons);
    CarryOut(plan);
  }

  // The same, of which nothing is known but that it ends.
  void DecideByPortions() {
    Portion portion{{}, static_cast<std::size_t>(*rc::gen::inRange(1, 60))};
    do {
      Plan plan = assigner_.Decide(portion);
      RC_ASSERT((!plan.continues_after || !portion.after || *portion.after < *plan.continues_after));
      portion.after = plan.continues_after;
      CarryOut(plan);
      if (*rc::gen::inRange(0, 2) == 0) Change();
    } while (portion.after);
  }

 private:
  // What is reported of changes is enough to know all reasons.
  void FollowChanges() {
    for (const Shape& shape : world_.queues.TakeChanges()) {
      const Answers* answers = world_.queues.WaitingOf(shape);
      if (answers == nullptr) {
        reasons_.erase(shape);
      } else {
        reasons_[shape] = ReasonsOf(*answers);
      }
    }
  }

  static std::vector<Reason> ReasonsOf(const Answers& answers) {
    std::vector<Reason> reasons;
    for (const auto& [pool, decision] : answers) reasons.push_back(decision.reason);
    return reasons;
  }

  // As the launcher: of what a pool has taken, something may be seen.
  void CarryOut(const Plan& plan) {
    std::set<ProviderName> providers;
    for (const Plan::Acceptance& acceptance : plan.accept) {
      const NodeRequest& request = *world_.requests.at(acceptance.request);
      PoolView& pool = world_.Pool(acceptance.pool);
      if (*rc::gen::inRange(0, 2) == 0) {
        for (const LabelName& label : request.node_types) Add(pool.pool.used, pool.labels.at(label).need);
        pool.is_waiting |= *rc::gen::inRange(0, 6) == 0;
      }
      providers.insert(acceptance.pool.provider);
      world_.queues.Remove(acceptance.request);
      // It may be given back at once.
      if (*rc::gen::inRange(0, 6) == 0) world_.queues.Put(acceptance.request, request);
    }
    for (const Plan::Declination& declination : plan.decline) {
      NodeRequest& request = *world_.requests.at(declination.request);
      world_.queues.Remove(declination.request);
      for (const auto& [key, decision] : declination.by)
        request.declined_by.push_back(world_.Pool(key).launcher);
      if (*rc::gen::inRange(0, 2) == 0) world_.queues.Put(declination.request, request);
    }
    for (std::size_t i = 0; i < world_.pools.size(); ++i) {
      if (providers.contains(world_.pools[i].key.provider)) SetPool(i, *rc::gen::arbitrary<bool>());
    }
    assigner_.SetTenants(world_.tenants);
  }

  void SetPool(std::size_t position, bool has_other_nodes = false) {
    assigner_.SetPool(position, world_.pools[position], has_other_nodes);
  }

  std::size_t AnyPosition() const { return *rc::gen::inRange<std::size_t>(0, world_.pools.size()); }

  void AddRequest() { world_.AddRequest(next_request_++); }

  std::optional<RequestId> AnyRequest() const {
    if (world_.requests.empty()) return std::nullopt;
    auto at = std::next(world_.requests.begin(), *rc::gen::inRange<std::ptrdiff_t>(
                                                     0, static_cast<std::ptrdiff_t>(world_.requests.size())));
    return at->first;
  }

  void RemoveRequest() {
    std::optional<RequestId> id = AnyRequest();
    if (!id) return;
    world_.queues.Remove(*id);
    world_.requests.erase(*id);
  }

  void ChangeRequest() {
    std::optional<RequestId> id = AnyRequest();
    if (!id) return;
    NodeRequest& request = *world_.requests.at(*id);
    world_.queues.Remove(*id);
    request.relative_priority = *rc::gen::inRange(0, 3);
    if (*rc::gen::inRange(0, 2) == 0) request.declined_by.clear();
    world_.queues.Put(*id, request);
  }

  void ChangeFreeNodes() {
    std::size_t position = AnyPosition();
    PoolView& pool = world_.pools[position];
    if (pool.labels.empty()) return;
    for (std::set<NodeId>& free : world_.free_nodes) {
      if (pool.labels.begin()->second.free_nodes != &free) continue;
      if (!free.empty() && *rc::gen::arbitrary<bool>()) {
        free.erase(free.begin());
      } else {
        free.insert(NodeId(fmt::format("new-{}", next_node_++)));
      }
    }
    SetPool(position, true);
  }

  void ChangeTenant() {
    if (*rc::gen::inRange(0, 4) == 0) {
      world_.tenants.erase("limited");
    } else {
      world_.tenants["limited"] = {{{"instances", *rc::gen::inRange(0, 6)}},
                                   {{"instances", *rc::gen::inRange(0, 6)}}};
    }
    assigner_.SetTenants(world_.tenants);
  }

  void ChangeRegistry() {
    if (world_.registered.empty()) return;
    std::size_t position = *rc::gen::inRange<std::size_t>(0, world_.registered.size());
    RegisteredPool& pool = world_.registered[position];
    switch (*rc::gen::inRange(0, 8)) {
      case 0:
        pool.is_failing = !pool.is_failing;
        break;
      case 1:
        pool.is_provider_paused = !pool.is_provider_paused;
        break;
      case 2:
        pool.priority = *rc::gen::element(50, 100, 150);
        break;
      case 3:
        pool.broken_labels = pool.broken_labels.empty() ? pool.labels : std::set<LabelName>();
        break;
      case 4:
        if (!pool.labels.insert(LabelName("odd")).second) pool.labels.erase(LabelName("odd"));
        break;
      case 5:
        world_.registered.erase(world_.registered.begin() + static_cast<std::ptrdiff_t>(position));
        break;
      default:
        pool.is_paused = !pool.is_paused;
        break;
    }
    Registry before = std::exchange(world_.registry, Registry(world_.registered));
    assigner_.RegistryChanged(before);
  }

  void ChangeLabel() {
    std::size_t position = AnyPosition();
    PoolView& pool = world_.pools[position];
    if (pool.labels.empty()) return;
    LabelView& label = pool.labels.begin()->second;
    switch (*rc::gen::inRange(0, 5)) {
      case 0:
        label.is_unknown = !label.is_unknown;
        break;
      case 1:
        label.is_image_ready = !label.is_image_ready;
        break;
      case 2:
        label.is_broken = !label.is_broken;
        break;
      case 3:
        label.need["cores"] = *rc::gen::inRange(0, 5);
        break;
      default:
        label.standing = *rc::gen::element(Standing::kClosed, Standing::kMayProbe, Standing::kOpen);
        break;
    }
    SetPool(position);
  }

  // A pool's, and with it that of all pools of its provider.
  void ChangeUse() {
    std::size_t changed = AnyPosition();
    world_.pools[changed].pool.used["instances"] = *rc::gen::inRange(0, 6);
    int launches = *rc::gen::inRange(0, 4);
    int of_provider = *rc::gen::inRange(0, 7);
    std::set<std::string> reserved;
    if (*rc::gen::inRange(0, 3) == 0) reserved.insert("ram");
    for (std::size_t i = 0; i < world_.pools.size(); ++i) {
      PoolView& pool = world_.pools[i];
      if (pool.key.provider != world_.pools[changed].key.provider) continue;
      pool.launches_in_progress = launches;
      pool.provider.used["instances"] = of_provider;
      pool.provider.reserved = reserved;
      SetPool(i);
    }
  }

  void ChangePool() {
    std::size_t position = AnyPosition();
    PoolView& pool = world_.pools[position];
    switch (*rc::gen::inRange(0, 11)) {
      case 0:
        pool.is_disabled = !pool.is_disabled;
        break;
      case 1:
        pool.paused_by = pool.paused_by ? std::nullopt : std::optional<std::string>("an operator");
        break;
      case 2:
        pool.launches_nodes = !pool.launches_nodes;
        break;
      case 3:
        pool.provider_fault = pool.provider_fault.empty() ? "refused" : "";
        break;
      case 4:
        pool.is_provider_away = !pool.is_provider_away;
        break;
      case 5:
        pool.is_cloud_full = !pool.is_cloud_full;
        break;
      case 6:
        pool.is_waiting = !pool.is_waiting;
        break;
      case 7:
        pool.pool.limit["instances"] = *rc::gen::inRange(0, 6);
        break;
      case 8:
        pool.refused_labels =
            pool.refused_labels.empty() ? std::set{LabelName("small")} : std::set<LabelName>();
        break;
      case 9:
        pool.priority = *rc::gen::element(50, 100, 100);
        break;
      default:
        pool.ignores_provider_quota = !pool.ignores_provider_quota;
        break;
    }
    SetPool(position);
  }

  RandomWorld world_ = RandomWorld::Make();
  Assigner assigner_{world_.queues, world_.registry};
  std::map<Shape, std::vector<Reason>> reasons_;
  int next_request_ = 0;
  int next_node_ = 0;
};

// D-111
TEST(AssignerPropertyTest, WhatItKnowsAlreadyIsWhatItWouldBeAnswered) {  // D-111
  EXPECT_TRUE(rc::check([] {
    ChangingWorld world;
    for (int step = *rc::gen::inRange(1, 20); step > 0; --step) {
      for (int i = *rc::gen::inRange(0, 3); i > 0; --i) world.Change();
      if (*rc::gen::inRange(0, 4) == 0) world.DecideByPortions();
      world.Decide();
    }
  }));
}

// Each pool offers three labels, and nothing is left of it; three pools are a cloud. A request for each label
// waits for each of five tenants.
class ManyPools {
 public:
  ManyPools(int pool_count, int shapes) : labels_(shapes / 5) {
    for (int i = 0; i < pool_count; ++i) {
      PoolView pool;
      pool.key = {ProviderName(fmt::format("cloud-{}", i / 3)), PoolName(fmt::format("pool-{}", i))};
      pool.launcher = LauncherId(fmt::format("launcher-{}", i));
      pool.pool.limit = pool.pool.used = {{"instances", 10}};
      pool.is_waiting = true;
      RegisteredPool announced{pool.launcher, pool.key.provider, 100, false, {}};
      for (int each = 0; each < 3; ++each) {
        LabelName label(fmt::format("label-{}", (i + each) % labels_));
        pool.labels[label] = {.need = {{"instances", 1}}};
        announced.labels.insert(label);
      }
      pools.push_back(std::move(pool));
      registered.push_back(std::move(announced));
    }
    registry = Registry(registered);
    assigner.SetPools(pools);
    for (int i = 0; i < shapes; ++i) Add(i);
  }

  RequestId Add(int shape) {
    auto request = std::make_unique<NodeRequest>();
    request->state = RequestState::kRequested;
    request->node_types = {LabelName(fmt::format("label-{}", shape % labels_))};
    request->tenant_name = fmt::format("tenant-{}", shape / labels_);
    RequestId id(fmt::format("200-{:010}", requests.size()));
    queues.Put(id, *request);
    requests.push_back(std::move(request));
    return id;
  }

  void SetPool(std::size_t position) { assigner.SetPool(position, pools[position], false); }

  void RegistryChanged() { assigner.RegistryChanged(std::exchange(registry, Registry(registered))); }

  // Returns how many questions were asked.
  std::uint64_t Decide() {
    std::uint64_t before = assigner.question_count();
    plan = assigner.Decide();
    return assigner.question_count() - before;
  }

  std::vector<PoolView> pools;
  std::vector<RegisteredPool> registered;
  std::vector<std::unique_ptr<NodeRequest>> requests;
  Queues queues;
  Registry registry;
  Assigner assigner{queues, registry};
  Plan plan;

 private:
  int labels_ = 0;
};

// The nodes of the other pool's former view are gone when the pool gets other labels.
TEST(AssignerTest, NodesOfFormerViewsAreNotRead) {
  ManyPools world(2, 10);
  auto nodes = std::make_unique<std::set<NodeId>>();
  for (PoolView& pool : world.pools) pool.labels.begin()->second.free_nodes = nodes.get();
  world.assigner.SetPools(world.pools);
  world.Decide();
  nodes.reset();
  for (PoolView& pool : world.pools) pool.labels.begin()->second.free_nodes = nullptr;
  world.pools[0].labels.erase(LabelName("label-1"));
  world.assigner.SetPool(0, world.pools[0], true);
  world.assigner.SetPool(1, world.pools[1], true);
  EXPECT_EQ(world.Decide(), 20U);
}

TEST(AssignerTest, PoolsThatAreGoneTakeNothing) {
  ManyPools world(2, 10);
  world.pools[0].pool.used.clear();
  world.pools[0].is_waiting = false;
  world.assigner.SetPools(world.pools);
  world.assigner.SetPools({});
  EXPECT_EQ(world.Decide(), 0U);
  EXPECT_TRUE(world.plan.accept.empty());
  world.assigner.SetPools(world.pools);
  world.Decide();
  EXPECT_FALSE(world.plan.accept.empty());
}

struct Size {
  int pools;
  int shapes;
};

const Size kManyPools{testing::Often(600, 120), testing::Often(1000, 200)};

// What an event costs does not depend on how many pools and shapes there are that it does not concern.
class AnEvent : public ::testing::TestWithParam<Size> {
 protected:
  AnEvent() : world(GetParam().pools, GetParam().shapes) {
    EXPECT_EQ(world.Decide(), static_cast<std::uint64_t>(GetParam().pools * GetParam().shapes));
  }
  ManyPools world;
};

INSTANTIATE_TEST_SUITE_P(Sizes, AnEvent, ::testing::Values(Size{21, 35}, kManyPools),
                         [](const auto& size) { return std::to_string(size.param.pools); });

TEST_P(AnEvent, OfARequestLikeOthersThatWaitCostsNoQuestion) {  // D-111
  RequestId id = world.Add(17);
  EXPECT_EQ(world.Decide(), 0U);
  EXPECT_TRUE(world.plan.accept.empty());
  // Another version of it.
  NodeRequest urgent = *world.requests[17];
  urgent.relative_priority = -1;
  world.queues.Put(id, urgent);
  EXPECT_EQ(world.Decide(), 0U);
  world.queues.Remove(id);
  EXPECT_EQ(world.Decide(), 0U);
}

// Three labels, each requested by five tenants.
TEST_P(AnEvent, OfAPoolCostsAQuestionForEachShapeThatWaitsForIt) {  // D-111
  world.pools[3].pool.used = {{"instances", 11}};
  world.SetPool(3);
  EXPECT_EQ(world.Decide(), 15U);
  EXPECT_TRUE(world.plan.accept.empty());
  world.pools[3].pool.used = {{"instances", 9}};
  world.pools[3].is_waiting = false;
  world.SetPool(3);
  EXPECT_LE(world.Decide(), 1U + 3U * 15U);  // it takes from those of its cloud
  ASSERT_FALSE(world.plan.accept.empty());
  EXPECT_EQ(world.plan.accept[0].pool, world.pools[3].key);
}

TEST_P(AnEvent, ThatChangesNothingCostsNoQuestion) {  // D-111
  for (std::size_t i = 0; i < world.pools.size(); ++i) world.SetPool(i);
  world.assigner.SetTenants({});
  world.RegistryChanged();
  EXPECT_EQ(world.Decide(), 0U);
}

// Each label is offered by nine pools.
TEST_P(AnEvent, OfATenantCostsAQuestionForEachPoolThatOffersWhatItAsksFor) {  // D-111
  world.assigner.SetTenants({{"tenant-1", {{{"instances", 1}}, {{"instances", 1}}}}});
  EXPECT_EQ(world.Decide(), static_cast<std::uint64_t>(GetParam().shapes) / 5U * 9U);
  world.assigner.SetTenants({{"tenant-1", {{{"instances", 1}}, {{"instances", 1}}}}});
  EXPECT_EQ(world.Decide(), 0U);
}

TEST_P(AnEvent, OfAPoolThatPausesConcernsThoseOfItsProvider) {  // D-111
  world.registered[0].is_paused = true;
  world.RegistryChanged();
  EXPECT_EQ(world.Decide(), 3U * 15U);
}

TEST_P(AnEvent, OfAPoolThatFailsConcernsWhatItOffers) {  // D-111
  world.registered[0].is_failing = true;
  world.RegistryChanged();
  EXPECT_EQ(world.Decide(), 15U * static_cast<std::uint64_t>(GetParam().pools) + 15U);
}

}  // namespace

}  // namespace nodepool::sched
