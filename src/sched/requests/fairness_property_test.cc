#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <list>

#include "model/resources.h"
#include "sched/requests/assign_for_test.h"

namespace nodepool::sched {
namespace {

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
