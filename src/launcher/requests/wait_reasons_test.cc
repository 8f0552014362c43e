#include "launcher/requests/wait_reasons.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>
#include <map>
#include <set>

#include "launcher/launcher_fixture_for_test.h"
#include "model/node_request.h"

namespace nodepool::launcher {

namespace {

using sched::Decision;
using sched::Reason;
using sched::Shortfall;

const PoolKey kCloudMain{ProviderName("cloud"), PoolName("main")};

Decision Defer(Reason reason, std::string detail = "") {
  return {Decision::Kind::kDefer, reason, std::move(detail)};
}

// `needed` more do not fit.
Decision AtLimit(Reason reason, Shortfall::Limit of, double used, double limit, double needed = 1) {
  std::string resource = of == Shortfall::Limit::kProvider ? "cores" : "instances";
  return {Decision::Kind::kDefer, reason, "t1", false, Shortfall{of, resource, used, limit, needed}};
}

std::string SentenceFor(const Decision& decision) { return Sentence(ReasonOf(kCloudMain, decision)).text; }

// WHY-2
TEST(WaitReasonsTest, OfTheTenantsLimit) {
  using enum Shortfall::Limit;
  WaitReason reason = ReasonOf(kCloudMain, AtLimit(Reason::kTenantLimit, kTenant, 8, 8));
  EXPECT_EQ(reason.code, "tenant-limit");
  EXPECT_EQ(Sentence(reason).text,
            "tenant t1 has 8 of max-servers 8; raise it in tenant-resource-limits, or wait for its nodes");
  EXPECT_EQ(
      SentenceFor(AtLimit(Reason::kTenantLimit, kTenant, 6, 8, 3)),
      "tenant t1 has 6 of max-servers 8, 3 more are needed; raise it in tenant-resource-limits, or wait "
      "for its nodes");
  EXPECT_EQ(SentenceFor(AtLimit(Reason::kTenantLimit, kTenant, 0, 8, 9)),
            "tenant t1 has max-servers 8, and the request needs 9; raise it in tenant-resource-limits");
}

TEST(WaitReasonsTest, OfLimitsOfPoolAndCloud) {
  using enum Shortfall::Limit;
  EXPECT_EQ(SentenceFor(AtLimit(Reason::kCapacityReserved, kPool, 20, 20)),
            "cloud main uses 20 of 20 instances; raise its max-servers, or wait for nodes");
  EXPECT_EQ(SentenceFor(AtLimit(Reason::kCapacityReserved, kPool, 18, 20)),
            "cloud main uses 18 of 20 instances, the rest is kept for an earlier request; raise its "
            "max-servers, or wait for nodes");
  Decision cloud = AtLimit(Reason::kCapacityReserved, kProvider, 16, 16, 4);
  cloud.shortfall->others = 8;
  EXPECT_EQ(SentenceFor(cloud),
            "cloud main uses 16 of 24 cores of the cloud's quota, others use 8; raise the quota, or wait for "
            "nodes");
}

TEST(WaitReasonsTest, OfWhatHasNoFigures) {
  EXPECT_EQ(SentenceFor(Defer(Reason::kProviderUnusable, "the cloud is away")),
            "provider cloud cannot be used: the cloud is away");
  EXPECT_EQ(SentenceFor(Defer(Reason::kProviderPaused, "alice: upgrade")),
            "provider cloud is paused by alice: upgrade; `nodepool provider-unpause cloud` ends it");
  EXPECT_EQ(SentenceFor(Defer(Reason::kNoFreeNode, "bm")), "cloud main has no free node of label bm");
  EXPECT_EQ(SentenceFor(Defer(Reason::kOthersCanServe, "ovh main")),
            "left to ovh main, which has its labels");
}

TEST(WaitReasonsTest, OfAPlanThatWaits) {
  sched::PoolView pool;
  pool.key = kCloudMain;
  pool.labels[LabelName("small")].need = {{"instances", 1}, {"cores", 4}, {"ram", 0.5}};
  pool.pool.limit = {{"instances", 5}};
  pool.pool.used = {{"instances", 5}};
  sched::FillPlan plan;
  plan.wait = {LabelName("small")};
  plan.pool_shortage = {{"instances", 1}};
  plan.provider_shortage = {{"cores", 4}, {"ram", 0.5}};
  WaitReason reason = ReasonOf(pool, plan);
  EXPECT_EQ(reason.code, "capacity");
  EXPECT_EQ(reason.text, "uses 5 of 5 instances; raise its max-servers, or wait for nodes");
  EXPECT_EQ(reason.labels, plan.wait);
  plan.is_refused = true;
  EXPECT_EQ(ReasonOf(pool, plan).text,
            "waits until the cloud has capacity: it refused more cores, ram; free some, or raise the quota");
  plan.provider_shortage.clear();
  plan.refused.labels = {LabelName("small")};
  EXPECT_EQ(ReasonOf(pool, plan).text,
            "waits until the cloud has capacity: it refused label small; free some, or raise the quota");
}

TEST(WaitReasonsTest, OfAPlanThatWaitsForItsTurn) {
  sched::PoolView pool;
  pool.key = kCloudMain;
  pool.launches_in_progress = pool.max_concurrency = 2;
  sched::FillPlan plan;
  plan.wait = {LabelName("small")};
  plan.turns_awaited = 1;
  WaitReason reason = ReasonOf(pool, plan);
  EXPECT_EQ(reason.code, "launches-in-progress");
  EXPECT_EQ(reason.text,
            "has 2 of 2 launches of max-concurrency in progress; raise it to launch more at a time");
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
    Report(std::map<sched::Shape, sched::Answers>{{shape_, {{kCloudMain, std::move(decision)}}}});
  }
  void Report(std::map<sched::Shape, sched::Answers> waiting) {
    std::set<sched::Shape> changes;
    for (const auto& [shape, answers] : waiting_) changes.insert(shape);
    for (const auto& [shape, answers] : waiting) changes.insert(shape);
    waiting_ = std::move(waiting);
    auto answers_of = [this](const sched::Shape& shape) {
      auto answers = waiting_.find(shape);
      return answers == waiting_.end() ? nullptr : &answers->second;
    };
    wait_log_.Report(changes, answers_of, queues_, now_);
  }

  std::list<NodeRequest> requests_;
  sched::Queues queues_;
  sched::Shape shape_;
  std::map<sched::Shape, sched::Answers> waiting_;
  SteadyTime now_{std::chrono::hours(1)};
  WaitLog wait_log_{log::Logger("nodepool.NodePool")};
  log::Capture log_;
};

TEST_F(WaitLogTest, OneLineForAllRequestsOfAShape) {
  Wait(3);
  Report(Defer(Reason::kTenantLimit, "t1"));
  ASSERT_EQ(log_.records().size(), 1u);
  EXPECT_EQ(
      log::Annotated(log_.records()[0]),
      "[e: e1] [node_request: 200-0000000000] The request for small of tenant t1 (and 2 more like it) waits: "
      "tenant t1 is at its limit");
}

TEST_F(WaitLogTest, OnlyTheDecidingReasonIsLogged) {
  Wait(1);
  PoolKey other{ProviderName("other"), PoolName("main")};
  Report(std::map<sched::Shape, sched::Answers>{
      {shape_,
       {{other, Defer(Reason::kOthersCanServe, "cloud main")},
        {kCloudMain, Defer(Reason::kProviderUnusable, "the cloud is away")}}}});
  EXPECT_THAT(log_.records().at(0).text,
              ::testing::EndsWith("waits: provider cloud cannot be used: the cloud is away"));
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
    Report(std::map<sched::Shape, sched::Answers>());
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
    waiting[sched::ShapeOf(request)] = {{kCloudMain, Defer(Reason::kTenantLimit)}};
  }
  for (int i = 0; i < 20; ++i) {
    Report(waiting);
    now_ += std::chrono::seconds(10);
  }
  ASSERT_EQ(log_.records().size(), 1001u);
  EXPECT_EQ(log_.records().back().text,
            "Requests of 500 more kinds wait, too many to log why each does; `nodepool request-list "
            "--detail` shows it");
  now_ += std::chrono::minutes(5);
  Report(std::map<sched::Shape, sched::Answers>());
  Report(waiting);
  EXPECT_EQ(log_.records().size(), 2002u) << "those that no longer wait make room";
}

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What a failed request says of the pools that declined it (launcher.md 9.2).
class DeclineReasonsTest : public LauncherTest {
 protected:
  std::vector<std::string> ReasonsOfFailed(std::vector<std::string> labels) {
    RequestId id = Request(std::move(labels));
    EXPECT_TRUE(AwaitState(id, RequestState::kFailed));
    return DeclineReasons(*Read(id));
  }
  // By id, as the launcher shows them.
  std::map<RequestId, RequestStatus> Shown(const Running& running) {
    std::map<RequestId, RequestStatus> shown;
    running.launcher->ForEachRequest([&](const RequestStatus& status) {
      shown[status.id] = status;
      return true;
    });
    return shown;
  }
};

TEST_F(DeclineReasonsTest, ALabelThatNoPoolHas) {
  AddPool("hosts", "main", {"big"});
  StartLauncher();
  EXPECT_THAT(ReasonsOfFailed({"smal"}), ElementsAre("cloud main: it has no label smal; did you mean small?",
                                                     "hosts main: it has no label smal"));
}

TEST_F(DeclineReasonsTest, MoreThanThePoolMayHave) {
  AddPool("cloud", "main", {"small"}).max_servers = 5;
  StartLauncher();
  EXPECT_THAT(ReasonsOfFailed(std::vector<std::string>(6, "small")),
              ElementsAre("cloud main: 6 instances needed, the pool's max-servers is 5"));
}

TEST_F(DeclineReasonsTest, MoreThanTheCloudHas) {
  script().available = driver::QuotaInformation::Limit({{"cores", 3}});
  StartLauncher();
  EXPECT_THAT(ReasonsOfFailed({"small", "small"}),
              ElementsAre("cloud main: 4 cores needed, the quota in the cloud is 3"));
}

TEST_F(DeclineReasonsTest, APoolThatIsDisabled) {
  AddPool("cloud", "main", {"small"}).max_servers = 0;
  StartLauncher();
  EXPECT_THAT(ReasonsOfFailed({"small"}), ElementsAre("cloud main: its max-servers is 0, which disables it"));
}

TEST_F(DeclineReasonsTest, AnImageThatIsMissing) {
  script().not_ready = {LabelName("small")};
  StartLauncher();
  EXPECT_THAT(ReasonsOfFailed({"small"}),
              ElementsAre("cloud main: image image of label small is not available"));
}

TEST_F(DeclineReasonsTest, ALabelThatCannotBeLaunched) {
  script().label_errors.emplace(LabelName("small"), Error(Verdict::kInvalid, "no such flavor"));
  StartLauncher();
  EXPECT_THAT(ReasonsOfFailed({"small"}),
              ElementsAre("cloud main: label small cannot be launched: no such flavor"));
}

TEST_F(DeclineReasonsTest, ALaunchThatFailed) {
  script().launch_error = [](int) { return Error(Verdict::kFail, "Image not found:\nc851"); };
  StartLauncher();
  EXPECT_THAT(ReasonsOfFailed({"small"}),
              ElementsAre("cloud main: the launch of small failed: Image not found: c851"));
}

TEST_F(DeclineReasonsTest, ARequestThatSucceedsHasNoneAndNoKeyForThem) {
  StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_THAT(Read(id)->foreign.unknown, IsEmpty());
}

TEST_F(DeclineReasonsTest, AreShownForAnHourAfterTheClientHasDeletedTheRequest) {
  Running& running = StartLauncher();
  RequestId id = Request({"smal"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFailed));
  EXPECT_FALSE(Shown(running).at(id).is_deleted);
  DeleteRequest(id);
  RequestId other = Request({"small"});
  time_.Advance(minutes(59));
  RequestStatus kept = Shown(running).at(id);
  EXPECT_TRUE(kept.is_deleted);
  EXPECT_EQ(kept.record->state, RequestState::kFailed);
  EXPECT_THAT(DeclineReasons(*kept.record),
              ElementsAre("cloud main: it has no label smal; did you mean small?"));
  EXPECT_FALSE(Shown(running).at(other).is_deleted);
  time_.Advance(minutes(2));
  EXPECT_FALSE(Shown(running).contains(id));
}

TEST_F(DeclineReasonsTest, OfVeryManyDeletedRequestsTheLastAreShown) {
  Running& running = StartLauncher();
  std::vector<RequestId> ids;
  for (int i = 0; i < 1010; ++i) ids.push_back(Request({"smal"}));
  for (const RequestId& id : ids) ASSERT_TRUE(AwaitState(id, RequestState::kFailed));
  time_.Advance(seconds(5));
  for (const RequestId& id : ids) DeleteRequest(id);
  time_.Advance(seconds(5));
  auto shown = Shown(running);
  EXPECT_EQ(shown.size(), 1000u);
  EXPECT_FALSE(shown.contains(ids.front()));
  EXPECT_TRUE(shown.contains(ids.back()));
}

TEST_F(DeclineReasonsTest, OfRequestsThatSucceededNothingIsKept) {
  Running& running = StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  DeleteRequest(id);
  time_.Advance(seconds(5));
  EXPECT_THAT(Shown(running), IsEmpty());
}

// What a cloud lacked when it was last read may be there when a request comes.

using std::chrono::seconds;

class LookAgainTest : public LauncherTest {
 protected:
  // A reading of the cloud that takes a second and finds the image that has appeared.
  Task<> FindImage() {
    co_await time_.loop().SleepFor(seconds(1));
    script().not_ready.clear();
  }
  Task<> Fail() {
    co_await time_.loop().SleepFor(seconds(1));
    if (failures_ > 0 && failures_-- > 0) throw Error(Verdict::kRetry, "the cloud is away");
    script().not_ready.clear();
  }

  Task<> MendLabel() {
    script().label_errors.clear();
    co_return;
  }

  int failures_ = 0;
};

// drivers.md 5.12
TEST_F(LookAgainTest, AnImageThatHasAppearedServesTheRequest) {
  script().not_ready = {LabelName("small")};
  script().look_again = [this] { return FindImage(); };
  StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_EQ(script().looks, 1);
  EXPECT_TRUE(Read(id)->declined_by.empty());
}

TEST_F(LookAgainTest, ALabelInErrorThatIsMendedServesTheRequest) {
  script().label_errors.emplace(LabelName("small"), Error(Verdict::kInvalid, "no such flavor"));
  script().look_again = [this] { return MendLabel(); };
  StartLauncher();
  RequestId id = Request({"small"});
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
}

TEST_F(LookAgainTest, AnImageThatIsStillMissingFailsTheRequestAfterOneLook) {
  script().not_ready = {LabelName("small")};
  StartLauncher();
  RequestId id = Request({"small"});
  EXPECT_TRUE(AwaitState(id, RequestState::kFailed));
  EXPECT_EQ(script().looks, 1);
}

TEST_F(LookAgainTest, WithoutAnAnswerNothingIsDeclined) {
  failures_ = 3;
  script().not_ready = {LabelName("small")};
  script().look_again = [this] { return Fail(); };
  StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_EQ(script().looks, 4);
}

TEST_F(LookAgainTest, ALabelThatIsNotOfferedNeedsNoLook) {
  StartLauncher();
  RequestId id = Request({"no-such-label"});
  EXPECT_TRUE(AwaitState(id, RequestState::kFailed));
  EXPECT_EQ(script().looks, 0);
}

}  // namespace

}  // namespace nodepool::launcher
