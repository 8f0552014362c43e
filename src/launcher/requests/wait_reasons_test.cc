#include "launcher/requests/wait_reasons.h"

#include <gtest/gtest.h>

#include <list>

#include "launcher/requests/wait_log.h"

namespace nodepool::launcher {
namespace {

using sched::Decision;
using sched::Reason;

const PoolKey kPool{ProviderName("cloud"), PoolName("main")};

Decision Defer(Reason reason, std::string detail = "") {
  return {Decision::Kind::kDefer, reason, std::move(detail)};
}

TEST(WaitReasonsTest, OfADecision) {
  WaitReason reason = ReasonOf(kPool, Defer(Reason::kTenantLimit, "cores"));
  EXPECT_EQ(reason.code, "tenant-limit");
  EXPECT_EQ(reason.text, "the tenant's limit is reached: cores");
}

TEST(WaitReasonsTest, OfAPlanThatWaits) {
  sched::FillPlan plan;
  plan.wait = {LabelName("small")};
  plan.pool_shortage = {{"instances", 1}};
  plan.provider_shortage = {{"cores", 4}, {"ram", 0.5}};
  WaitReason reason = ReasonOf(kPool, plan);
  EXPECT_EQ(reason.code, "capacity");
  EXPECT_EQ(reason.text,
            "not enough capacity, missing 1 instances in the pool, 4 cores in the provider, 0.5 ram in the "
            "provider");
  EXPECT_EQ(reason.labels, plan.wait);
}

class WaitLogTest : public ::testing::Test {
 protected:
  void Wait(int count) {
    for (int i = 0; i < count; ++i) {
      NodeRequest& request = requests_.emplace_back();
      request.state = RequestState::kRequested;
      request.node_types = {LabelName("small")};
      request.tenant_name = "t1";
      request.event_id = "e1";
      queues_.Put(RequestId(fmt::format("200-{:010}", i)), request);
    }
    shape_ = sched::ShapeOf(requests_.front());
  }
  void Report(Decision decision) {
    wait_log_.Report({{shape_, {{kPool, std::move(decision)}}}}, queues_, now_);
  }

  std::list<NodeRequest> requests_;
  sched::Queues queues_;
  sched::Shape shape_;
  SteadyTime now_{std::chrono::hours(1)};
  WaitLog wait_log_{log::Logger("nodepool.NodePool")};
  log::Capture log_;
};

TEST_F(WaitLogTest, OneLineForAllRequestsOfAShape) {
  Wait(3);
  Report(Defer(Reason::kTenantLimit, "cores"));
  ASSERT_EQ(log_.records().size(), 1u);
  EXPECT_EQ(
      log::Annotated(log_.records()[0]),
      "[e: e1] [node_request: 200-0000000000] The request for small of tenant t1 (and 2 more like it) waits; "
      "pool main of provider cloud: the tenant's limit is reached: cores");
}

TEST_F(WaitLogTest, OnlyAChangeOfReasonIsLogged) {
  Wait(1);
  Report(Defer(Reason::kLaunchesInProgress, "1 of 10"));
  now_ += std::chrono::seconds(60);
  Report(Defer(Reason::kLaunchesInProgress, "2 of 10"));
  EXPECT_EQ(log_.records().size(), 1u);
  Report(Defer(Reason::kCapacityReserved));
  EXPECT_EQ(log_.records().size(), 2u);
}

TEST_F(WaitLogTest, ReasonsThatAlternateAreLoggedOnceInTenSeconds) {
  Wait(1);
  for (int i = 0; i < 200; ++i) {
    Report(Defer(i % 2 == 0 ? Reason::kLaunchesInProgress : Reason::kCapacityReserved));
    now_ += std::chrono::milliseconds(300);
  }
  EXPECT_LE(log_.records().size(), 7u);
}

TEST_F(WaitLogTest, WaitingNowAndThenIsNotLogged) {
  Wait(1);
  for (int i = 0; i < 10; ++i) {
    Report(Defer(Reason::kLaunchesInProgress));
    wait_log_.Report({}, queues_, now_);
    now_ += std::chrono::seconds(1);
  }
  EXPECT_EQ(log_.records().size(), 1u);
}

// Anybody may ask for thousands of kinds of nodes.
TEST_F(WaitLogTest, ThousandsOfShapesAreCounted) {
  std::map<sched::Shape, sched::Answers> waiting;
  for (int i = 0; i < 1500; ++i) {
    NodeRequest& request = requests_.emplace_back();
    request.state = RequestState::kRequested;
    request.tenant_name = fmt::format("t{}", i);
    queues_.Put(RequestId(fmt::format("200-{:010}", i)), request);
    waiting[sched::ShapeOf(request)] = {{kPool, Defer(Reason::kTenantLimit)}};
  }
  for (int i = 0; i < 20; ++i) {
    wait_log_.Report(waiting, queues_, now_);
    now_ += std::chrono::seconds(10);
  }
  ASSERT_EQ(log_.records().size(), 1001u);
  EXPECT_EQ(log_.records().back().text,
            "Requests of 500 more kinds wait, too many to log why each does; `nodepool request-list "
            "--detail` shows it");
  wait_log_.Report({}, queues_, now_ + std::chrono::minutes(5));
  wait_log_.Report(waiting, queues_, now_ + std::chrono::minutes(5));
  EXPECT_EQ(log_.records().size(), 2002u) << "those that no longer wait make room";
}

}  // namespace
}  // namespace nodepool::launcher
