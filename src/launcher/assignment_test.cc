#include "launcher/launcher_fixture_for_test.h"

namespace nodepool::launcher {
namespace {

using std::chrono::seconds;

class AssignmentTest : public LauncherTest {};

TEST_F(AssignmentTest, NodesAreUnlockedWhenTheRequestBecomesFulfilled) {  // BB-09
  StartLauncher();
  std::optional<std::size_t> contenders;
  Subscription registration = WatchRequests([&](const RequestId&, const store::StoredRequest& request) {
    if (request.record.state != RequestState::kFulfilled) return;
    contenders = 0;
    for (const NodeId& node : request.record.nodes)
      *contenders += zk_.tree().GetChildren("/nodepool/nodes/" + node.value + "/lock")->names.size();
  });
  RequestId id = Request({"small", "large"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_EQ(contenders, 0u);
}

TEST_F(AssignmentTest, ServesARequestFromCreationToDeletion) {  // coordination.17.6, D-10
  StartLauncher();
  RequestId id = Request({"small"}, [](NodeRequest& request) { request.tenant_name = "t1"; });
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  NodeRequest request = *Read(id);
  ASSERT_EQ(request.nodes.size(), 1u);
  Node node = *Read(request.nodes[0]);
  EXPECT_EQ(node.state, NodeState::kReady);
  EXPECT_EQ(node.allocated_to, id);
  EXPECT_EQ(node.type, (std::vector<LabelName>{LabelName("small")}));
  EXPECT_EQ(node.tenant_name, "t1");
  EXPECT_EQ(node.requestor, "test");
  EXPECT_EQ(node.provider, ProviderName("cloud"));
  EXPECT_TRUE(node.launcher->starts_with("np01.example.org-PoolWorker.cloud-main-")) << *node.launcher;
  EXPECT_TRUE(node.created_time);

  auto nodes = Take(id);
  Return(nodes);
  EXPECT_TRUE(Await([&] { return Nodes().empty(); }));
  EXPECT_EQ(script().deleted.size(), 1u);
  EXPECT_TRUE(Await([&] {
    return time_.Run(client_->GetChildren("/nodepool/requests-lock"))->names.empty();
  })) << "the lock directory is removed with the request (D-06)";
  EXPECT_TRUE(Children("/nodepool/launchers").empty());
}

TEST_F(AssignmentTest, ServesRequestsWithANegativeNumber) {  // D-100
  StartLauncher();
  RequestId id = Request({"small"}, {}, "200-");
  EXPECT_EQ(id.value, "200--0000000000");
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
}

// The budget of ZooKeeper operations for a request of one node, its use and its
// deletion. The scripted driver itself writes twice (instance, ready).
TEST_F(AssignmentTest, ZooKeeperOperationsPerNodeLife) {
  Running& running = StartLauncher();
  for (int round = 0; round < 2; ++round) {  // the first one makes the directories
    running.recorder->ClearCalls();
    RequestId id = Request({"small"});
    ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
    auto nodes = Take(id);
    Return(nodes);
    ASSERT_TRUE(Await([&] { return Nodes().empty(); }));
    time_.Advance(std::chrono::minutes(5));
  }
  std::vector<std::string> writes;
  for (const auto& call : running.recorder->calls()) {
    if (call.is_write) writes.push_back(call.name + " " + call.path);
  }
  EXPECT_THAT(writes, ::testing::SizeIs(9));
  std::vector<std::string> reads;
  for (const auto& call : running.recorder->calls()) {
    if (!call.is_write) reads.push_back(call.name + " " + call.path);
  }
  EXPECT_THAT(reads, ::testing::SizeIs(6)) << "in four messages; nothing that it has written itself";
}

// Their lock directories are removed together: one transaction less for each.
TEST_F(AssignmentTest, ZooKeeperOperationsOfManyRequests) {
  Running& running = StartLauncher();
  std::vector<RequestId> ids;
  for (int i = 0; i < 20; ++i) ids.push_back(Request({"small"}));
  for (const RequestId& id : ids) {
    ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
    auto nodes = Take(id);
    Return(nodes);
  }
  ASSERT_TRUE(Await([&] { return Nodes().empty() && Children("/nodepool/requests-lock").empty(); }));
  auto is_removal = [](const auto& call) {
    return call.is_write && call.path.starts_with("/nodepool/requests-lock/") &&
           call.path.find('/', 25) == call.path.npos;
  };
  EXPECT_LE(std::ranges::count_if(running.recorder->calls(), is_removal), 20 + 3) << "20 of them create it";
}

TEST_F(AssignmentTest, NodesComeInTheOrderOfTheLabels) {  // coordination.17.7, BB-02
  StartLauncher();
  RequestId id = Request({"small", "large", "small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  std::vector<std::string> labels;
  for (const NodeId& node : NodesOf(id)) labels.push_back(Read(node)->type.front().value);
  EXPECT_EQ(labels, (std::vector<std::string>{"small", "large", "small"}));
}

TEST_F(AssignmentTest, EmptyRequestIsFulfilledAtOnce) {  // BB-01
  StartLauncher();
  RequestId id = Request({});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_TRUE(Read(id)->nodes.empty());
}

TEST_F(AssignmentTest, UnknownLabelFailsWithOneDeclinePerPool) {  // coordination.17.10, LA-25
  AddPool("cloud", "second", {"other"});
  StartLauncher();
  RequestId id = Request({"unknown"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFailed));
  EXPECT_EQ(Read(id)->declined_by.size(), 2u);
}

TEST_F(AssignmentTest, DeclinesWhatIsLargerThanThePool) {  // BB-37
  AddPool("cloud", "main", {"small"}).max_servers = 1;
  StartLauncher();
  RequestId id = Request({"small", "small"});
  EXPECT_TRUE(AwaitState(id, RequestState::kFailed));
  EXPECT_EQ(script().launches, 0);
}

TEST_F(AssignmentTest, YieldsToThePreferredProviderUntilItIsPaused) {  // LA-92
  driver::PoolConfig& high = AddPool("high", "main", {"small"});
  high.max_servers = 1;
  high.priority = 1;
  StartLauncher();
  RequestId first = Request({"small"});
  ASSERT_TRUE(AwaitState(first, RequestState::kFulfilled));
  auto nodes = Take(first);
  EXPECT_EQ(nodes[0].record().provider, ProviderName("high"));
  RequestId second = Request({"small"});
  ASSERT_TRUE(AwaitState(second, RequestState::kPending));
  RequestId third = Request({"small"});
  ASSERT_TRUE(AwaitState(third, RequestState::kFulfilled));
  EXPECT_EQ(Read(Read(third)->nodes[0])->provider, ProviderName("cloud"));
  EXPECT_EQ(Read(second)->state, RequestState::kPending);
  Return(nodes);
  EXPECT_TRUE(AwaitState(second, RequestState::kFulfilled));
}

TEST_F(AssignmentTest, MalformedRecordsAreSkipped) {  // coordination.17.22, D-08, D-04
  StartLauncher();
  Put("/nodepool/requests/200-0000000900", "{not json");
  Put("/nodepool/requests/nodash", "{}");
  Put("/nodepool/nodes/0000000900", R"({"state": "bogus"})");
  RequestId id = Request({"small"}, [](NodeRequest& request) {
    request.requestor_data = "opaque";
    request.foreign.Add("jenkins_label", "kept");
  });
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_EQ(Read(id)->requestor_data, "opaque");
  EXPECT_EQ(Read(id)->foreign.unknown, R"("jenkins_label": "kept")");
}

// D-04, D-08: requests whose texts are not valid Unicode are served or declined like any other.
TEST_F(AssignmentTest, HalvesOfSurrogatePairsBlockNoRequest) {
  StartLauncher();
  std::string data = R"("requestor_data": {"id": 214933908099603316458134831733103562640, "name": "\udc80"})";
  RequestId served("200-0000000900"), declined("200-0000000901");
  Put("/nodepool/requests/" + served.value,
      R"({"state": "requested", "node_types": ["small"], )" + data + "}");
  Put("/nodepool/requests/" + declined.value,
      R"({"state": "requested", "node_types": ["\udc80"], )" + data + "}");
  ASSERT_TRUE(AwaitState(served, RequestState::kFulfilled));
  ASSERT_TRUE(AwaitState(declined, RequestState::kFailed));
  EXPECT_THAT(ToJson(*Read(served)), ::testing::HasSubstr(data));
  EXPECT_THAT(ToJson(*Read(declined)), ::testing::AllOf(::testing::HasSubstr(data),
                                                        ::testing::HasSubstr(R"("node_types": ["\udc80"])")));
}

TEST_F(AssignmentTest, PoolThatLaunchesNothingKeepsRequestsWaiting) {  // D-25, S-waiting
  script().launches_nodes = false;
  StartLauncher();
  RequestId id = Request({"small"});
  time_.Advance(seconds(30));
  EXPECT_EQ(Read(id)->state, RequestState::kRequested);
  EXPECT_TRUE(Read(id)->declined_by.empty());
  AddNode(NodeState::kReady);
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
}

TEST_F(AssignmentTest, SeveralLabelsOfOneOrderAreServedInIt) {  // LA-02
  AddPool("cloud", "main", {"l1", "l2", "l3", "l4"});
  for (const char* label : {"l1", "l2", "l3", "l4"}) label_config(label).min_ready = 1;
  StartLauncher();
  ASSERT_TRUE(Await([&] { return FreeNodes() == 4; }));
  RequestId id = Request({"l3", "l1", "l4", "l2"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  std::vector<std::string> labels;
  for (const NodeId& node : NodesOf(id)) labels.push_back(Read(node)->type.front().value);
  EXPECT_THAT(labels, ::testing::ElementsAre("l3", "l1", "l4", "l2"));
}

TEST_F(AssignmentTest, DisabledPoolDeclines) {  // LA-74, configuration.17.13
  AddPool("cloud", "main", {"small"}).max_servers = 0;
  StartLauncher();
  RequestId id = Request({"small"});
  EXPECT_TRUE(AwaitState(id, RequestState::kFailed));
  EXPECT_EQ(Children("/nodepool/components/pool").size(), 1u) << "it stays registered";
}

TEST_F(AssignmentTest, ARequestedProviderServesWhereItCan) {  // LA-31, LA-32
  AddPool("second", "main", {"small"});
  StartLauncher();
  for (std::string provider : {"cloud", "second"}) {
    RequestId id =
        Request({"small"}, [&](NodeRequest& request) { request.provider = ProviderName(provider); });
    ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
    EXPECT_EQ(NodeOf(id).provider, ProviderName(provider));
  }
  RequestId id =
      Request({"small"}, [](NodeRequest& request) { request.provider = ProviderName("no such provider"); });
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
}

// The foreign component record has neither name nor priority, as in old versions.
TEST_F(AssignmentTest, ARequestedProviderWithoutTheLabelIsIgnored) {  // LA-33
  Put("/nodepool/components/pool/elsewhere",
      R"({"hostname": "elsewhere", "kind": "pool", "model_api": 0, "state": "running", "version": "4",
          "id": "elsewhere-PoolWorker", "provider_name": "other-provider",
          "supported_labels": ["other-label"]})");
  StartLauncher();
  RequestId id =
      Request({"small"}, [](NodeRequest& request) { request.provider = ProviderName("other-provider"); });
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_EQ(NodeOf(id).provider, ProviderName("cloud"));
}

TEST_F(AssignmentTest, PoolWithoutLabelsLeavesEverythingToTheOther) {  // LA-62
  AddPool("a-first", "main", {});
  StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_EQ(NodeOf(id).provider, ProviderName("cloud"));
}

TEST_F(AssignmentTest, LabelWithoutImageFailsAndTheOthersAreServed) {  // LA-75
  AddPool("broken", "main", {"other"});
  script("broken").not_ready = {LabelName("other")};
  StartLauncher();
  RequestId bad = Request({"other"});
  RequestId good = Request({"small"});
  EXPECT_TRUE(AwaitState(good, RequestState::kFulfilled));
  EXPECT_TRUE(AwaitState(bad, RequestState::kFailed));
}

TEST_F(AssignmentTest, IncapablePoolDoesNotDeclineBeforeTheCapableOne) {  // BB-04
  AddForeignPool([](Component& pool) { pool.supported_labels = {LabelName("exotic")}; });
  StartLauncher();
  RequestId id = Request({"exotic"});
  time_.Advance(std::chrono::minutes(2));
  EXPECT_EQ(Read(id)->state, RequestState::kRequested);
  EXPECT_TRUE(Read(id)->declined_by.empty());
  auto request = time_.Run(client_store_->requests.TryLock(id));
  time_.Run(request->UpdateAndUnlock([](NodeRequest& record) {
    record.declined_by.push_back(LauncherId("elsewhere-PoolWorker.other-main-0"));
    return Change::kWrite;
  }));
  ASSERT_TRUE(AwaitState(id, RequestState::kFailed));
  EXPECT_EQ(Read(id)->declined_by.size(), 2u);
}

TEST_F(AssignmentTest, ForeignPoolOfTheSamePriorityDelaysNothing) {  // BB-05
  AddForeignPool([](Component& pool) { pool.supported_labels = {LabelName("small")}; });
  StartLauncher();
  RequestId id = Request({"small"});
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
}

TEST_F(AssignmentTest, APreferredForeignPoolIsLeftTheRequestUntilItIsPaused) {  // BB-05
  auto preferred = [](Component& pool) {
    pool.supported_labels = {LabelName("small")};
    pool.priority = 1;
  };
  AddForeignPool(preferred);
  StartLauncher();
  RequestId id = Request({"small"});
  time_.Advance(std::chrono::minutes(10));
  EXPECT_EQ(Read(id)->state, RequestState::kRequested);
  AddForeignPool([&](Component& pool) {
    preferred(pool);
    pool.is_paused = true;
  });
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
}

TEST_F(AssignmentTest, RequestStaysUntilEveryRegisteredPoolHasDeclined) {  // BB-06, D-23
  std::string foreign = AddForeignPool();
  StartLauncher();
  RequestId id = Request({"unknown"});
  ASSERT_TRUE(Await([&] { return !Read(id)->declined_by.empty(); }));
  time_.Advance(std::chrono::minutes(2));
  EXPECT_EQ(Read(id)->state, RequestState::kRequested);
  ASSERT_EQ(Read(id)->declined_by.size(), 1u);
  EXPECT_THAT(Read(id)->declined_by[0].value, ::testing::HasSubstr("cloud-main"));
  RemoveForeignPool(foreign);
  EXPECT_TRUE(AwaitState(id, RequestState::kFailed, seconds(5)));
}

TEST_F(AssignmentTest, PrecedenceAsTextThenPriorityThenAge) {  // BB-03, LA-87
  AddPool("cloud", "main", {"small"}).max_servers = 1;
  RequestId later = Request({"small"}, [](NodeRequest& request) { request.relative_priority = 5; });
  RequestId soon = Request({"small"}, [](NodeRequest& request) { request.relative_priority = 1; });
  RequestId high = Request(
      {"small"}, [](NodeRequest& request) { request.relative_priority = 50; }, "100");
  StartLauncher();
  for (const RequestId& next : {high, soon, later}) {
    ASSERT_TRUE(AwaitState(next, RequestState::kFulfilled)) << next.value;
    auto nodes = Take(next);
    Return(nodes);
  }
}

TEST_F(AssignmentTest, ServesBeforeItDeclines) {  // LA-88
  RequestId unknown = Request({"unknown"}, [](NodeRequest& request) { request.relative_priority = 1; });
  RequestId known = Request({"small"}, [](NodeRequest& request) { request.relative_priority = 2; });
  std::vector<RequestId> touched;
  Subscription registration = WatchRequests([&](const RequestId& id, const store::StoredRequest&) {
    if (!std::count(touched.begin(), touched.end(), id)) touched.push_back(id);
  });
  StartLauncher();
  ASSERT_TRUE(AwaitState(unknown, RequestState::kFailed));
  ASSERT_TRUE(AwaitState(known, RequestState::kFulfilled));
  EXPECT_THAT(touched, ::testing::ElementsAre(known, unknown));
}

TEST_F(AssignmentTest, NoMoreLaunchesAtATimeThanAllowed) {  // D-20
  provider_config().max_concurrency = 2;
  script().launch_time = seconds(10);
  StartLauncher();
  std::vector<RequestId> ids;
  for (int i = 0; i < 6; ++i) ids.push_back(Request({"small"}));
  time_.Advance(seconds(5));
  EXPECT_EQ(script().launches, 2);
  for (const RequestId& id : ids) ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_EQ(script().launches, 6);
}

TEST_F(AssignmentTest, NodesWithoutTypeOrPoolBlockNothing) {  // LA-50
  AddNode(NodeState::kReady, [](Node& node) { node.type.clear(); });
  AddNode(NodeState::kReady, [](Node& node) { node.pool = PoolName(); });
  StartLauncher();
  RequestId id = Request({"small"});
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
}

TEST_F(AssignmentTest, WhatTheClientWroteIsRetained) {  // BB-35
  AddPool("cloud", "main", {"small"}).max_servers = 1;
  StartLauncher();
  auto nodes = Use({"small"});
  RequestId id = Request({"small"}, [&](NodeRequest& request) {
    request.requestor_data = boost::json::object{{"any", "thing"}};
    request.provider = ProviderName("cloud");
    request.relative_priority = 7;
    request.event_id = "e1";
    request.created_time = time_.loop().Now();
    request.tenant_name = "t1";
  });
  NodeRequest before = *Read(id);
  ASSERT_TRUE(AwaitState(id, RequestState::kPending));
  Return(nodes);
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  NodeRequest after = *Read(id);
  after.state = before.state;
  after.state_time = before.state_time;
  after.nodes.clear();
  EXPECT_EQ(ToJson(after), ToJson(before));
}

TEST_F(AssignmentTest, ARequestLikeOthersThatWaitCostsNoQuestion) {  // D-111
  script().launches_nodes = false;
  const Launcher& launcher = *StartLauncher().launcher;
  Request({"small"});
  Request({"large"});
  ASSERT_TRUE(Await([&] { return launcher.decision_count() > 0 && launcher.question_count() > 1; }));
  time_.Advance(seconds(10));
  std::uint64_t decisions = launcher.decision_count();
  std::uint64_t questions = launcher.question_count();
  RequestId id = Request({"small"});
  ASSERT_TRUE(Await([&] { return launcher.decision_count() > decisions; }));
  time_.Advance(seconds(10));
  EXPECT_EQ(Read(id)->state, RequestState::kRequested);
  EXPECT_EQ(launcher.question_count(), questions);
}

TEST_F(AssignmentTest, WhatADriverDoesNotAnnounceCountsInTheNextDecision) {  // D-111
  script().launches_nodes = false;
  StartLauncher();
  RequestId small = Request({"small"});
  time_.Advance(seconds(10));
  ASSERT_EQ(Read(small)->state, RequestState::kRequested);
  script().launches_nodes = true;
  RequestId large = Request({"large"});
  EXPECT_TRUE(AwaitState(small, RequestState::kFulfilled, std::chrono::milliseconds(500)));
  EXPECT_TRUE(AwaitState(large, RequestState::kFulfilled));
}

TEST_F(AssignmentTest, WhatADriverDoesNotAnnounceCountsSoonAfterAnEvent) {  // D-111
  script().launches_nodes = false;
  const Launcher& launcher = *StartLauncher().launcher;
  time_.Advance(seconds(10));
  auto request_and_decide = [&] {
    std::uint64_t decisions = launcher.decision_count();
    RequestId id = Request({"small"});
    EXPECT_TRUE(Await([&] { return launcher.decision_count() > decisions; }));
    return id;
  };
  request_and_decide();
  script().launches_nodes = true;
  RequestId id = request_and_decide();
  EXPECT_EQ(Read(id)->state, RequestState::kRequested) << "it had just been read";
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled, seconds(2)));
}

class ProvidersTest : public AssignmentTest {
 protected:
  // Serves requests one after the other beside so many other providers. Returns how often a pool was read.
  std::uint64_t ViewsWith(int others) {
    intervals_.unannounced_change = std::chrono::hours(1);
    for (int i = 0; i < others; ++i)
      AddPool(fmt::format("other-{}", i), "main", {fmt::format("label-{}", i)});
    Running& running = StartLauncher();
    const Launcher& launcher = *running.launcher;
    time_.Advance(seconds(10));
    std::uint64_t before = launcher.view_count();
    for (int i = 0; i < 5; ++i) {
      RequestId id = Request({"small"});
      EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
    }
    std::uint64_t views = launcher.view_count() - before;
    EXPECT_GT(views, 0u);
    StopLauncher(running);
    return views;
  }
};

TEST_F(ProvidersTest, EventsOfAProviderReadItsPoolsAlone) {  // D-111
  std::uint64_t alone = ViewsWith(0);
  EXPECT_EQ(ViewsWith(12), alone);
}

}  // namespace
}  // namespace nodepool::launcher
