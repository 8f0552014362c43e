#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <list>

#include "model/node.h"
#include "sched/requests/assign_for_test.h"
#include "sched/requests/random_world_for_test.h"

namespace nodepool::sched {

namespace {

// Applies a plan to the snapshot as the launcher would, request by request, and reports what each
// request takes.
class Bookkeeper {
 public:
  explicit Bookkeeper(RandomWorld& world) : world_(world) {}

  FillPlan Take(const Plan::Acceptance& acceptance) {
    PoolView& pool = world_.Pool(acceptance.pool);
    const NodeRequest& request = *world_.requests.at(acceptance.request);
    FillPlan fill = PlanFill(pool, MissingLabels(request.node_types, {}), request.reuse, taken_);
    for (const FillPlan::Reuse& reuse : fill.reuse) taken_.insert(reuse.node);
    Resources launched;
    for (const LabelName& label : fill.launch) Add(launched, pool.labels.at(label).need);
    Add(pool.pool.used, launched);
    for (const auto& [resource, amount] : fill.pool_shortage) pool.pool.reserved.insert(resource);
    for (PoolView& sibling : world_.pools) {
      if (sibling.key.provider != pool.key.provider) continue;
      Add(sibling.provider.used, launched);
      for (const auto& [resource, amount] : fill.provider_shortage)
        sibling.provider.reserved.insert(resource);
    }
    return fill;
  }

 private:
  RandomWorld& world_;
  std::set<NodeId> taken_;
};

bool Offers(const PoolView& pool, const NodeRequest& request) {
  return std::ranges::all_of(request.node_types,
                             [&](const LabelName& label) { return pool.labels.contains(label); });
}

// The rules of launcher.md 9.2, implemented a second time.
bool MustDecline(const PoolView& pool, const NodeRequest& request) {
  if (pool.is_disabled) return true;
  Resources need;
  for (const LabelName& label : request.node_types) {
    auto offered = pool.labels.find(label);
    if (offered == pool.labels.end() || offered->second.is_broken || !offered->second.is_image_ready)
      return true;
    Add(need, offered->second.need);
  }
  if (!pool.launches_nodes) return false;
  auto exceeds = [&](const Resources& limit) {
    return std::ranges::any_of(limit, [&](const auto& entry) {
      auto needed = need.find(entry.first);
      return needed != need.end() && needed->second > entry.second;
    });
  };
  return exceeds(pool.pool.limit) || (!pool.ignores_provider_quota && exceeds(pool.provider.limit));
}

TEST(AssignPropertyTest, ARequestHasOneOwnerAtMost) {
  EXPECT_TRUE(rc::check([] {
    RandomWorld world = RandomWorld::Make();
    FreshPlan plan = Assign(world.TakeSnapshot());
    std::set<RequestId> decided;
    for (const auto& acceptance : plan.accept) RC_ASSERT(decided.insert(acceptance.request).second);
    for (const auto& declination : plan.decline) RC_ASSERT(decided.insert(declination.request).second);
  }));
}

TEST(AssignPropertyTest, AFreeNodeIsGivenOnce) {
  EXPECT_TRUE(rc::check([] {
    RandomWorld world = RandomWorld::Make();
    FreshPlan plan = Assign(world.TakeSnapshot());
    Bookkeeper books(world);
    std::set<NodeId> given;
    for (const auto& acceptance : plan.accept) {
      for (const FillPlan::Reuse& reuse : books.Take(acceptance).reuse)
        RC_ASSERT(given.insert(reuse.node).second);
    }
  }));
}

TEST(AssignPropertyTest, NoLaunchExceedsALimit) {
  EXPECT_TRUE(rc::check([] {
    RandomWorld world = RandomWorld::Make();
    FreshPlan plan = Assign(world.TakeSnapshot());
    Bookkeeper books(world);
    for (const auto& acceptance : plan.accept) {
      FillPlan fill = books.Take(acceptance);
      const PoolView& pool = world.Pool(acceptance.pool);
      for (const LabelName& label : fill.launch) {
        for (const auto& [resource, amount] : pool.labels.at(label).need) {
          auto limit = pool.pool.limit.find(resource);
          if (limit != pool.pool.limit.end()) RC_ASSERT(pool.pool.used.at(resource) <= limit->second);
          auto shared = pool.provider.limit.find(resource);
          if (shared != pool.provider.limit.end() && !pool.ignores_provider_quota)
            RC_ASSERT(pool.provider.used.at(resource) <= shared->second);
        }
      }
    }
  }));
}

// D-20: the launches, now or later, are within max-concurrency, except for the first request of an
// idle provider, which launches no more at a time either.
TEST(AssignPropertyTest, MaxConcurrencyIsRespected) {
  EXPECT_TRUE(rc::check([] {
    RandomWorld world = RandomWorld::Make();
    bool is_idle = *rc::gen::arbitrary<bool>();
    for (PoolView& pool : world.pools) {
      if (is_idle) pool.launches_in_progress = 0;
    }
    FreshPlan plan = Assign(world.TakeSnapshot());
    Bookkeeper books(world);
    std::map<ProviderName, int> launching;
    std::map<ProviderName, int> requests;
    for (const auto& acceptance : plan.accept) {
      const PoolView& pool = world.Pool(acceptance.pool);
      auto [sum, is_first] = launching.try_emplace(pool.key.provider, pool.launches_in_progress);
      int max_concurrency = pool.max_concurrency;
      FillPlan fill = books.Take(acceptance);
      int own = static_cast<int>(fill.launch.size() + fill.wait.size());
      if (own == 0) continue;
      if (max_concurrency > 0)
        RC_ASSERT(static_cast<int>(fill.launch.size()) <= std::max(0, max_concurrency - sum->second));
      bool was_idle = sum->second == 0;
      sum->second += own;
      if (max_concurrency > 0) RC_ASSERT((was_idle || sum->second <= max_concurrency));
    }
  }));
}

TEST(AssignPropertyTest, ATenantStaysWithinItsLimit) {
  EXPECT_TRUE(rc::check([] {
    RandomWorld world = RandomWorld::Make();
    FreshPlan plan = Assign(world.TakeSnapshot());
    for (const auto& [name, tenant] : world.tenants) {
      Resources used = tenant.used;
      bool has_grown = false;
      for (const auto& acceptance : plan.accept) {
        const NodeRequest& request = *world.requests.at(acceptance.request);
        if (request.tenant_name != name) continue;
        for (const LabelName& label : request.node_types) {
          Add(used, world.Pool(acceptance.pool).labels.at(label).need);
          has_grown = true;
        }
      }
      for (const auto& [resource, limit] : tenant.limit) RC_ASSERT((!has_grown || used[resource] <= limit));
    }
  }));
}

// launcher.md 9.2 and step h: a pool declines requests that it can never serve, and those it lacks
// labels for only when no other pool could take them.
TEST(AssignPropertyTest, APoolDeclinesOnlyWhatItMust) {
  EXPECT_TRUE(rc::check([] {
    RandomWorld world = RandomWorld::Make();
    FreshPlan plan = Assign(world.TakeSnapshot());
    for (const auto& declination : plan.decline) {
      const NodeRequest& request = *world.requests.at(declination.request);
      if (declination.by.empty()) RC_ASSERT(world.registry.AllDeclined(request));
      for (const auto& [key, decision] : declination.by) {
        const PoolView& pool = world.Pool(key);
        RC_ASSERT(MustDecline(pool, request));
        RC_ASSERT(!request.WasDeclinedBy(pool.launcher));
        if (!Offers(pool, request)) RC_ASSERT(world.registry.Candidates(request).empty());
      }
    }
  }));
}

TEST(AssignPropertyTest, APoolTakesOnlyWhatItCanServe) {
  EXPECT_TRUE(rc::check([] {
    RandomWorld world = RandomWorld::Make();
    FreshPlan plan = Assign(world.TakeSnapshot());
    for (const auto& acceptance : plan.accept) {
      const NodeRequest& request = *world.requests.at(acceptance.request);
      const PoolView& pool = world.Pool(acceptance.pool);
      RC_ASSERT(!MustDecline(pool, request));
      RC_ASSERT(!request.WasDeclinedBy(pool.launcher));
      std::vector<const RegisteredPool*> candidates = world.registry.Candidates(request);
      // A requested provider binds while one of its pools can serve the request.
      if (std::ranges::find(candidates, request.provider, &RegisteredPool::provider) != candidates.end()) {
        RC_ASSERT(request.provider == pool.key.provider);
        std::erase_if(candidates, [&](const auto* other) { return other->provider != request.provider; });
      }
      for (const RegisteredPool* other : candidates)
        RC_ASSERT((other->priority >= pool.priority || other->is_paused));
    }
  }));
}

// D-33: capacity that an earlier request waits for is not used by a later one.
TEST(AssignPropertyTest, CapacityThatARequestWaitsForIsLeftAlone) {
  EXPECT_TRUE(rc::check([] {
    RandomWorld world = RandomWorld::Make();
    FreshPlan plan = Assign(world.TakeSnapshot());
    Bookkeeper books(world);
    std::map<PoolKey, std::set<std::string>> awaited;
    std::map<ProviderName, std::set<std::string>> awaited_of_provider;
    for (const auto& acceptance : plan.accept) {
      FillPlan fill = books.Take(acceptance);
      const PoolView& pool = world.Pool(acceptance.pool);
      for (const LabelName& label : fill.launch) {
        for (const auto& [resource, amount] : pool.labels.at(label).need) {
          RC_ASSERT((amount <= 0 || !awaited[pool.key].contains(resource)));
          RC_ASSERT((amount <= 0 || pool.ignores_provider_quota ||
                     !awaited_of_provider[pool.key.provider].contains(resource)));
        }
      }
      if (world.requests.at(acceptance.request)->requestor == kMinReadyRequestor) continue;
      for (const auto& [resource, amount] : fill.pool_shortage) awaited[pool.key].insert(resource);
      for (const auto& [resource, amount] : fill.provider_shortage)
        awaited_of_provider[pool.key.provider].insert(resource);
    }
  }));
}

TEST(AssignPropertyTest, RequestsOfOneShapeAreServedInOrder) {
  EXPECT_TRUE(rc::check([] {
    RandomWorld world = RandomWorld::Make();
    FreshPlan plan = Assign(world.TakeSnapshot());
    std::map<Shape, ServiceOrder> last;
    for (const auto& acceptance : plan.accept) {
      const NodeRequest& request = *world.requests.at(acceptance.request);
      ServiceOrder order = *OrderOf(acceptance.request, request);
      auto [before, is_first] = last.try_emplace(ShapeOf(request), order);
      RC_ASSERT((is_first || before->second < order));
      before->second = order;
    }
    for (const auto& [shape, line] : world.queues.shapes()) {
      if (!plan.waiting.contains(shape) || !last.contains(shape)) continue;
      // Requests that continue to wait are after all that were taken.
      RC_ASSERT(last.at(shape) < line.requests.rbegin()->first);
    }
  }));
}

// Portion by portion each request is decided about once, the first portion as if there were no others.
TEST(AssignPropertyTest, PortionsLeaveNoRequestOut) {
  EXPECT_TRUE(rc::check([] {
    RandomWorld world = RandomWorld::Make();
    FreshPlan whole = Assign(world.TakeSnapshot());
    RC_ASSERT(!whole.continues_after);
    Portion portion{{}, static_cast<std::size_t>(*rc::gen::inRange(1, 80))};
    std::set<RequestId> decided;
    std::set<Shape> waiting;
    bool is_first = true;
    do {
      FreshPlan plan = Assign(world.TakeSnapshot(), portion);
      for (std::size_t i = 0; is_first && i < plan.accept.size(); ++i) {
        RC_ASSERT(plan.accept[i].request == whole.accept[i].request);
        RC_ASSERT(plan.accept[i].pool == whole.accept[i].pool);
      }
      for (const auto& acceptance : plan.accept) RC_ASSERT(decided.insert(acceptance.request).second);
      for (const auto& declination : plan.decline) RC_ASSERT(decided.insert(declination.request).second);
      for (const auto& [shape, answers] : plan.waiting) RC_ASSERT(waiting.insert(shape).second);
      for (const RequestId& id : decided) world.queues.Remove(id);
      RC_ASSERT((!plan.continues_after || !portion.after || *portion.after < *plan.continues_after));
      portion.after = plan.continues_after;
      is_first = false;
    } while (portion.after);
    for (const auto& [id, request] : world.requests)
      RC_ASSERT((decided.contains(id) || waiting.contains(ShapeOf(*request))));
  }));
}

TEST(QueuesPropertyTest, AShapeIsDueByItsFirstRequestUntilItWaits) {
  EXPECT_TRUE(rc::check([] {
    Queues queues;
    std::deque<NodeRequest> requests;
    std::set<Shape> waiting;
    for (int step = *rc::gen::inRange(0, 60); step > 0; --step) {
      RequestId id(fmt::format("{}-{:010}", *rc::gen::element(100, 200), *rc::gen::inRange(0, 8)));
      NodeRequest& request = requests.emplace_back();
      request.state =
          *rc::gen::element(RequestState::kRequested, RequestState::kRequested, RequestState::kPending);
      request.relative_priority = *rc::gen::inRange(0, 3);
      request.node_types = {LabelName(*rc::gen::element<std::string>("small", "large"))};
      int change = *rc::gen::inRange(0, 8);
      if (change == 0 && !queues.due().empty()) {
        Line& line = *queues.due().begin()->second;
        waiting.insert(*line.shape);
        queues.Wait(line);
      } else if (change == 1 && !queues.shapes().empty()) {
        queues.ForEach([&](Line& line) { queues.SetDue(line); });
        waiting.clear();
      } else if (change == 2) {
        queues.Remove(id);
      } else {
        queues.Put(id, request);
      }
      std::erase_if(waiting, [&](const Shape& shape) { return !queues.shapes().contains(shape); });
      std::map<ServiceOrder, Line*> due;
      queues.ForEach([&](Line& line) {
        RC_ASSERT(!line.requests.empty());
        if (!waiting.contains(*line.shape)) due.emplace(line.requests.begin()->first, &line);
        const Queues::Lines alike{{line.number, &line}};
        RC_ASSERT(queues.WithFirstLabel(line.shape->node_types.front()) == alike);
      });
      RC_ASSERT(due == queues.due());
    }
  }));
}

// One pool, round by round, with decisions only: requests arrive, launches end after a round, nodes
// are used for some rounds and then deleted.
class Rounds {
 public:
  Rounds(int instances, int cores) {
    pool_.key = {ProviderName("cloud"), PoolName("main")};
    pool_.launcher = LauncherId("ours");
    pool_.labels[LabelName("small")] = {{{"instances", 1}, {"cores", 1}}};
    pool_.labels[LabelName("large")] = {{{"instances", 1}, {"cores", 4}}};
    pool_.pool.limit = {{"instances", instances}, {"cores", cores}};
    registry_ = Registry(
        {{pool_.launcher, pool_.key.provider, 100, false, {LabelName("small"), LabelName("large")}}});
  }

  bool CanEverServe(const std::vector<LabelName>& labels) const {
    Resources need;
    for (const LabelName& label : labels) Add(need, pool_.labels.at(label).need);
    return Fits(pool_.pool.limit, {}, need);
  }

  // Adds a request whose nodes are used for `use` rounds.
  void Submit(std::vector<LabelName> labels, int use) {
    auto request = std::make_unique<NodeRequest>();
    request->state = RequestState::kRequested;
    request->node_types = std::move(labels);
    RequestId id(fmt::format("200-{:010}", ++last_));
    queues_.Put(id, *request);
    // At worst it waits for all requests before it, one after the other.
    int ahead = 0;
    for (const Job& job : jobs_) ahead += job.is_done ? 0 : job.use + 4;
    jobs_.push_back({id, *OrderOf(id, *request), std::move(request), use, round_ + ahead + use + 4});
  }

  void Play() {
    ++round_;
    for (Job& job : jobs_) EndUse(job);
    for (Job& job : jobs_) {
      if (job.is_accepted && !job.is_done) Fill(job);
    }
    Snapshot snapshot{{View(nullptr)}, &registry_, {}, &queues_};
    FreshPlan plan = Assign(std::move(snapshot));
    for (const auto& acceptance : plan.accept) {
      Job& job = *std::ranges::find(jobs_, acceptance.request, &Job::id);
      queues_.Remove(job.id);
      job.is_accepted = true;
    }
    for (Job& job : jobs_) {
      if (job.is_accepted && !job.is_done) Fill(job);
    }
    for (const auto& declination : plan.decline) {
      Job& job = *std::ranges::find(jobs_, declination.request, &Job::id);
      RC_ASSERT(!CanEverServe(job.request->node_types));
      queues_.Remove(job.id);
      job.is_done = true;
    }
  }

  // No request has waited longer than its place in the order explains.
  void Check() const {
    for (const auto& [resource, limit] : pool_.pool.limit) {
      auto used = pool_.pool.used.find(resource);
      RC_ASSERT((used == pool_.pool.used.end() || used->second <= limit));
    }
    for (const Job& job : jobs_) RC_ASSERT((job.is_done || round_ <= job.deadline));
  }

 private:
  struct Job {
    RequestId id;
    ServiceOrder order;
    std::unique_ptr<NodeRequest> request;
    int use;
    int deadline;
    bool is_accepted = false;
    bool is_done = false;
    std::vector<LabelName> nodes = {};
    FillPlan plan = {};
    int in_use_until = 0;
  };

  // The pool as a job sees it: capacity that earlier jobs wait for is reserved.
  PoolView View(const Job* self) const {
    PoolView view = pool_;
    for (const Job& job : jobs_) {
      if (&job == self) break;
      if (!job.is_accepted || job.is_done || job.plan.wait.empty()) continue;
      view.is_waiting = true;
      for (const auto& [resource, amount] : job.plan.pool_shortage) view.pool.reserved.insert(resource);
    }
    return view;
  }

  void Fill(Job& job) {
    if (job.in_use_until > 0) return;
    job.plan = PlanFill(View(&job), MissingLabels(job.request->node_types, job.nodes), true);
    for (const LabelName& label : job.plan.launch) {
      Add(pool_.pool.used, pool_.labels.at(label).need);
      job.nodes.push_back(label);
    }
    if (job.plan.wait.empty()) job.in_use_until = round_ + 1 + job.use;
  }

  void EndUse(Job& job) {
    if (job.is_done || job.in_use_until == 0 || round_ < job.in_use_until) return;
    for (const LabelName& label : job.nodes) Subtract(pool_.pool.used, pool_.labels.at(label).need);
    job.is_done = true;
  }

  PoolView pool_;
  Registry registry_;
  Queues queues_;
  std::list<Job> jobs_;  // in service order
  int last_ = 0;
  int round_ = 0;
};

// D-33: an endless stream of small requests does not keep a large one from its turn.
TEST(FairnessPropertyTest, NoRequestStarves) {
  EXPECT_TRUE(rc::check([] {
    Rounds rounds(*rc::gen::inRange(1, 6), *rc::gen::inRange(1, 12));
    for (int round = 0; round < 60; ++round) {
      for (int i = *rc::gen::inRange(0, 3); i > 0; --i) {
        std::vector<LabelName> labels(static_cast<std::size_t>(*rc::gen::element(1, 1, 1, 2, 3)),
                                      LabelName(*rc::gen::element<std::string>("small", "small", "large")));
        rounds.Submit(std::move(labels), *rc::gen::inRange(1, 5));
      }
      rounds.Play();
      rounds.Check();
    }
  }));
}

}  // namespace

}  // namespace nodepool::sched
