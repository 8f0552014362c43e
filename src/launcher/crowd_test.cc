// What a request costs does not depend on how many there are: counts of what the loop runs and of decisions,
// not times.

#include <gtest/gtest.h>

#include "base/testing/often.h"
#include "launcher/cloud_fixture_for_test.h"

namespace nodepool::launcher {
namespace {

constexpr int kFew = testing::Often(200, 40);
constexpr int kMany = testing::Often(2000, 240);
constexpr const char* kUnlimited = "limits: {cores: -1, instances: -1, ram: -1}";

struct Cost {
  double handlers;   // that the loop ran, for each request
  double decisions;  // of the scheduler, for each request
};

class CrowdTest : public CloudTest {
 protected:
  void SetUp() override {
    CloudTest::SetUp();
    zk_.SetLatency(std::chrono::milliseconds(1));
  }

  // The first request makes the directories.
  void Start() {
    StartLauncher();
    ASSERT_TRUE(AwaitState(Request({"small"}), RequestState::kFulfilled));
  }

  // All at one instant, by nobody in particular.
  std::vector<RequestId> AddRequests(int count, const std::vector<LabelName>& labels) {
    NodeRequest request;
    request.SetState(RequestState::kRequested, time_.loop().Now());
    request.node_types = labels;
    std::vector<RequestId> ids;
    for (int i = 0; i < count; ++i) {
      zk::CreateOp create{"/nodepool/requests/200-", ToJson(request), zk::CreateMode::kPersistentSequential};
      auto created = zk_.tree().Create(create, 0, time_.loop().Now());
      if (!created) throw std::logic_error("the requests' directory is missing");
      ids.emplace_back(zk::BaseName(created->path));
    }
    return ids;
  }
  void AddReadyNodes(int count) {
    for (int i = 0; i < count; ++i) AddNode(NodeState::kReady);
  }

  // Until the first `served` of `count` requests are fulfilled.
  Cost CostOf(int count, int served, const std::vector<LabelName>& labels) {
    Launcher& launcher = *launchers_.front()->launcher;
    std::uint64_t decisions = launcher.decision_count();
    std::vector<RequestId> ids = AddRequests(count, labels);
    std::size_t handlers = time_.loop().RunReady();
    SteadyTime limit = time_.loop().SteadyNow() + std::chrono::minutes(5);
    while (Fulfilled(ids) < served) {
      if (!time_.clock().has_timers() || time_.clock().next_timer() > limit) {
        ADD_FAILURE() << Fulfilled(ids) << " of " << served << " requests are fulfilled";
        break;
      }
      time_.clock().AdvanceTo(time_.clock().next_timer());
      handlers += time_.loop().RunReady();
    }
    return {static_cast<double>(handlers) / count,
            static_cast<double>(launcher.decision_count() - decisions) / count};
  }

  // They are created and served in the order of their ids.
  int Fulfilled(const std::vector<RequestId>& ids) {
    while (fulfilled_[ids.front()] < static_cast<int>(ids.size())) {
      const RequestId& next = ids[static_cast<std::size_t>(fulfilled_[ids.front()])];
      auto record = zk_.tree().Get("/nodepool/requests/" + next.value);
      if (!record || record->data.find("\"fulfilled\"") == record->data.npos) break;
      ++fulfilled_[ids.front()];
    }
    return fulfilled_[ids.front()];
  }

  void ExpectFlat(const Cost& few, const Cost& many) {
    RecordProperty("handlers", fmt::format("{:.1f} {:.1f}", few.handlers, many.handlers));
    RecordProperty("decisions", fmt::format("{:.2f} {:.2f}", few.decisions, many.decisions));
    // Reads of the few fit into fewer messages.
    EXPECT_LE(many.handlers, 1.4 * few.handlers);
    EXPECT_LE(many.decisions, std::max(0.1, 1.1 * few.decisions))
        << "changes that come together are decided about together";
  }

  std::map<RequestId, int> fulfilled_;  // of the requests that begin with this one
};

TEST_F(CrowdTest, ALaunchCostsNoMoreAmongMany) {
  AddCloud({.simulation = kUnlimited});
  Start();
  Cost few = CostOf(kFew, kFew, {LabelName("small")});
  ExpectFlat(few, CostOf(kMany, kMany, {LabelName("small")}));
}

TEST_F(CrowdTest, ASetOfNodesCostsNoMoreAmongMany) {
  AddCloud({.simulation = kUnlimited});
  Start();
  std::vector<LabelName> three(3, LabelName("small"));
  Cost few = CostOf(kFew, kFew, three);
  ExpectFlat(few, CostOf(kMany / 3, kMany / 3, three));
}

TEST_F(CrowdTest, AReuseCostsNoMoreAmongMany) {
  AddCloud({.simulation = kUnlimited});
  Start();
  AddReadyNodes(kFew);
  Cost few = CostOf(kFew, kFew, {LabelName("small")});
  AddReadyNodes(kMany);
  ExpectFlat(few, CostOf(kMany, kMany, {LabelName("small")}));
}

TEST_F(CrowdTest, ARequestThatWaitsCostsNoMoreThanOneThatIsServed) {
  AddCloud({.pool = "max-servers: 500", .simulation = kUnlimited});
  Start();
  Cost few = CostOf(kFew, kFew, {LabelName("small")});
  ExpectFlat(few, CostOf(kMany, kFew, {LabelName("small")}));
}

// Requests of other programs are read one after the other, and what the launcher wrote itself is reported
// after them: here its cache shows requests as pending for seconds after they were fulfilled.
TEST_F(CrowdTest, ASweepLocksNoNodesOfFulfilledRequests) {
  intervals_.cleanup = std::chrono::seconds(1);
  AddCloud({.simulation = kUnlimited});
  Start();
  AddReadyNodes(kMany);
  zk_.SetLatency(std::chrono::seconds(1));
  testing::FaultyZk& recorder = *launchers_.front()->recorder;
  recorder.ClearCalls();
  CostOf(kMany, kMany, {LabelName("small")});
  // A lock that led to a change ends with it, in a transaction.
  auto is_in_vain = [](const auto& call) {
    return call.name == "Delete" && call.path.starts_with("/nodepool/nodes/");
  };
  EXPECT_EQ(std::ranges::count_if(recorder.calls(), is_in_vain), 0);
}

// Each of another shape: a decision about them is made in several portions.
TEST_F(CrowdTest, ThousandsOfShapesKeepNobodyWaiting) {
  constexpr int kShapes = testing::Often(8'000, 4'500);
  AddCloud({.pool = "max-servers: 1", .simulation = kUnlimited});
  AddCloud({.name = "elsewhere", .labels = {"other"}, .simulation = kUnlimited});
  Start();
  NodeRequest request;
  request.SetState(RequestState::kRequested, time_.loop().Now());
  request.node_types = {LabelName("small")};
  for (int i = 0; i < kShapes; ++i) {
    request.declined_by = {LauncherId(fmt::format("nobody-{}", i))};
    zk::CreateOp create{"/nodepool/requests/200-", ToJson(request), zk::CreateMode::kPersistentSequential};
    ASSERT_TRUE(zk_.tree().Create(create, 0, time_.loop().Now()));
  }
  // Behind all of them.
  EXPECT_TRUE(AwaitState(Request({"other"}, {}, "300"), RequestState::kFulfilled));
  auto explained = [&] {
    int count = 0;
    launchers_.front()->launcher->ForEachRequest([&](const RequestStatus& status) {
      if (!status.waits.empty()) ++count;
      return true;
    });
    return count;
  };
  EXPECT_TRUE(Await([&] { return explained() == kShapes; })) << explained();
}

}  // namespace
}  // namespace nodepool::launcher
