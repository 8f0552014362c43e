#include <gtest/gtest.h>

#include "async/testing/run_ready.h"
#include "base/testing/test_environment.h"
#include "launcher/cloud_fixture_for_test.h"

namespace nodepool::launcher {

namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class MinReadyTest : public LauncherTest {
 protected:
  // Records every request that appears in the tree.
  void WatchRequests() {
    watch_ = LauncherTest::WatchRequests(
        [this](const RequestId& id, const store::StoredRequest& request) { seen_.emplace(id, request); });
  }

  std::map<RequestId, store::StoredRequest> seen_;
  Subscription watch_;
};

TEST_F(MinReadyTest, OneNodeOfEachOfTwoLabels) {  // coordination.17.38
  label_config("small").min_ready = label_config("large").min_ready = 1;
  WatchRequests();
  StartLauncher();
  ASSERT_TRUE(Await([&] { return FreeNodes() == 2; }));
  EXPECT_TRUE(Await([&] { return time_.Run(client_store_->requests.List()).empty(); }))
      << "removed when served";
  std::vector<LabelName> asked;
  for (const auto& [id, request] : seen_) {
    EXPECT_THAT(id.value, ::testing::StartsWith("900-"));
    EXPECT_TRUE(request.revision.is_ephemeral());
    EXPECT_EQ(request.record.requestor, "NodePool:min-ready");
    asked.insert(asked.end(), request.record.node_types.begin(), request.record.node_types.end());
  }
  EXPECT_THAT(asked, ::testing::UnorderedElementsAre(LabelName("small"), LabelName("large")));
  for (const NodeId& id : Nodes()) EXPECT_TRUE(Read(id)->allocated_to.empty());
}

TEST_F(MinReadyTest, KeepsMinReadyNodes) {
  label_config("small").min_ready = 2;
  StartLauncher();
  ASSERT_TRUE(Await([&] { return FreeNodes() == 2; }));
  EXPECT_TRUE(Await([&] { return time_.Run(client_store_->requests.List()).empty(); }));
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_TRUE(Await([&] { return FreeNodes() == 2; })) << "the node handed out is replaced";
  time_.Advance(minutes(2));
  EXPECT_EQ(Nodes().size(), 3u);
}

TEST_F(MinReadyTest, RequestsHaveTheUsualFields) {  // BB-14
  label_config("small").min_ready = 1;
  WatchRequests();
  StartLauncher();
  ASSERT_TRUE(Await([&] { return FreeNodes() == 1; }));
  EXPECT_TRUE(Await([&] { return time_.Run(client_store_->requests.List()).empty(); }));
  ASSERT_EQ(seen_.size(), 1u);
  const auto& [id, request] = *seen_.begin();
  EXPECT_THAT(id.value, ::testing::StartsWith("900-"));
  EXPECT_TRUE(request.revision.is_ephemeral());
  EXPECT_FALSE(request.record.reuse);
  EXPECT_EQ(request.record.requestor, "NodePool:min-ready");
  EXPECT_THAT(request.record.event_id.value_or(""), ::testing::MatchesRegex("[0-9a-f]{32}"));
  EXPECT_THAT(request.record.node_types, ::testing::ElementsAre(LabelName("small")));
}

TEST_F(MinReadyTest, ExistingNodesCount) {  // BB-15
  label_config("small").min_ready = 3;
  AddNode(NodeState::kReady);
  WatchRequests();
  StartLauncher();
  ASSERT_TRUE(Await([&] { return FreeNodes() == 3; }));
  time_.Advance(minutes(2));
  EXPECT_EQ(seen_.size(), 2u);
}

TEST_F(MinReadyTest, ZeroOrLessDisablesIt) {  // LA-35, D-21
  label_config("small").min_ready = 0;
  label_config("large").min_ready = -1;
  WatchRequests();
  StartLauncher();
  time_.Advance(minutes(5));
  EXPECT_TRUE(seen_.empty());
  EXPECT_TRUE(Nodes().empty());
  RequestId id = Request({"large"});
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled)) << "an explicit request is served";
}

TEST_F(MinReadyTest, BacksOffAtCapacity) {  // D-27
  AddPool("cloud", "main", {"small"}).max_servers = 1;
  label_config("small").min_ready = 3;
  StartLauncher();
  time_.Advance(minutes(5));
  EXPECT_EQ(script().launches, 1);
  auto children = time_.Run(client_->GetChildren("/nodepool/requests"));
  // Two requests a minute at most for the two missing nodes, besides the one served.
  EXPECT_LE(children->stat.cversion, 2 * (1 + 2 * 6));
}

TEST_F(MinReadyTest, ChangedCapacityEndsTheBackOff) {  // D-27
  AddPool("cloud", "main", {"small"}).max_servers = 1;
  label_config("small").min_ready = 1;
  StartLauncher();
  auto nodes = Use({"small"});
  time_.Advance(seconds(5));
  EXPECT_EQ(FreeNodes(), 0);
  Return(nodes);
  EXPECT_TRUE(Await([&] { return FreeNodes() == 1; }, seconds(10)));
}

TEST_F(MinReadyTest, AShortageIsAnnouncedUntilItIsOver) {  // PAGE-20
  AddPool("cloud", "main", {"small"}).max_servers = 1;
  label_config("small").min_ready = 2;
  Running& running = StartLauncher();
  auto shortages = [&] {
    for (const auto& [path, component] : running.launcher->records().components.all()) {
      if (component.kind == ComponentKind::kLauncher) return component.shortages;
    }
    return std::map<LabelName, ShortStock>();
  };
  ASSERT_TRUE(Await([&] { return !shortages().empty(); }));
  WallTime since = shortages().at(LabelName("small")).since;
  EXPECT_THAT(shortages().at(LabelName("small")).why,
              ::testing::HasSubstr("cloud main: uses 1 of 1 instances"));
  time_.Advance(minutes(5));
  ASSERT_EQ(shortages().size(), 1u);
  EXPECT_EQ(shortages().at(LabelName("small")).since, since) << "the same one, whatever was tried";
  auto fewer = std::make_shared<driver::LoadedConfig>(*running.launcher->config());
  fewer->common.labels.at(LabelName("small")).min_ready = 1;
  running.launcher->Reconfigure(fewer);
  EXPECT_TRUE(Await([&] { return shortages().empty(); }));
}

// Two labels that do not fit at the same time must not displace each other in turn.
TEST_F(MinReadyTest, NoNodeIsDeletedForIt) {  // LA-24
  AddPool("cloud", "main", {"small", "large"}).max_servers = 1;
  label_config("small").min_ready = 1;
  label_config("large").min_ready = 1;
  StartLauncher();
  time_.Advance(minutes(30));
  EXPECT_EQ(script().launches, 1);
  EXPECT_TRUE(script().deleted.empty());
  EXPECT_EQ(FreeNodes(), 1);
}

TEST_F(MinReadyTest, MinReadyNodesOfSeveralLaunchersDoNotAddUp) {  // LA-30
  label_config("small").min_ready = 1;
  StartLauncher("np01");
  StartLauncher("np02");
  ASSERT_TRUE(Await([&] { return FreeNodes() == 1; }));
  time_.Advance(minutes(5));
  EXPECT_EQ(Nodes().size(), 1u);
}

TEST_F(MinReadyTest, MinReadyNodesOfLaunchersThatStartTogetherDoNotAddUp) {  // LA-30
  zk_.SetLatency(std::chrono::milliseconds(20));
  label_config("small").min_ready = 2;
  StartLauncher("np01");
  StartLauncher("np02");
  ASSERT_TRUE(Await([&] { return FreeNodes() == 2; }));
  time_.Advance(minutes(5));
  EXPECT_EQ(Nodes().size(), 2u);
}

TEST_F(MinReadyTest, DyingLauncherLeavesAFreeNode) {
  label_config("small").min_ready = 1;
  script().launch_time = seconds(10);
  Running& first = StartLauncher("np01");
  ASSERT_TRUE(Await([&] { return Nodes().size() == 1; }));
  StartLauncher("np02");
  Kill(first);
  ASSERT_TRUE(Await([&] { return FreeNodes() == 1; }));
  time_.Advance(minutes(2));
  EXPECT_EQ(Nodes().size(), 1u);
}

class MinReadyImageTest : public CloudTest {};

TEST_F(MinReadyImageTest, NothingIsRequestedBeforeThereIsAnImage) {  // BB-16
  top_ = "diskimages: [{name: debian}]";
  AddCloud({.labels = {"small"}, .provider = "diskimages: [{name: debian}]", .image = "diskimage: debian"});
  // Another label of the pool that has an image changes nothing.
  AddCloud({.name = "second",
            .labels = {"large"},
            .more_pools = ", {name: disk, labels: [{name: small, diskimage: debian, min-ram: 1}]}"});
  SetLabel("small", "min-ready: 1");
  SetLabel("large", "min-ready: 1");
  log::Capture log;
  Running& running = StartLauncher();
  ASSERT_TRUE(Await([&] { return FreeNodes() == 1; }));
  time_.Advance(minutes(2));
  EXPECT_EQ(log.Count("Min-ready of small waits: image debian has no upload in cloud; "
                      "image debian has no upload in second"),
            1);
  auto fault = [&] { return running.launcher->Providers().at(0).pools.at(0).labels.at(0).fault; };
  EXPECT_EQ(fault(), "image debian has no upload in cloud");
  EXPECT_EQ(time_.Run(client_->GetChildren("/nodepool/requests"))->stat.cversion, 2)
      << "one request came and went";
  AddUpload("debian");
  EXPECT_TRUE(Await([&] { return FreeNodes() == 2; }));
  EXPECT_EQ(fault(), std::nullopt);
}

TEST_F(MinReadyImageTest, ALabelWithoutFlavorIsAnnouncedThoughNobodyAsksForIt) {  // PAGE-20
  AddCloud({.labels = {"small"}});
  AddCloud({.name = "second", .labels = {"broken"}, .label = "flavor-name: none"});
  Running& running = StartLauncher();
  auto faults = [&] {
    std::map<LabelName, std::string> found;
    for (const Component* pool : running.launcher->records().components.Pools())
      found.insert(pool->label_faults.begin(), pool->label_faults.end());
    return found;
  };
  EXPECT_TRUE(Await([&] { return !faults().empty(); }, seconds(10)));
  EXPECT_THAT(faults(), ::testing::ElementsAre(::testing::Pair(
                            LabelName("broken"), ::testing::HasSubstr("no flavor for label broken"))));
}

// What a request costs does not depend on how many there are: counts of what the loop runs and of decisions,
// not times.

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
    std::size_t handlers = testing::RunReady(time_.loop());
    SteadyTime limit = time_.loop().SteadyNow() + std::chrono::minutes(5);
    while (Fulfilled(ids) < served) {
      if (!time_.clock().has_timers() || time_.clock().next_timer() > limit) {
        ADD_FAILURE() << Fulfilled(ids) << " of " << served << " requests are fulfilled";
        break;
      }
      time_.clock().AdvanceTo(time_.clock().next_timer());
      handlers += testing::RunReady(time_.loop());
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
