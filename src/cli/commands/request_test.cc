#include <gmock/gmock.h>

#include "async/task_group.h"
#include "cli/fixture_for_test.h"
#include "cli/node_claim.h"
#include "model/node_request.h"

namespace nodepool::cli {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Task<> Keep(Task<int> command, std::optional<int>& status, std::exception_ptr& error) {
  try {
    status = co_await std::move(command);
  } catch (...) {
    error = std::current_exception();
  }
}

// The command runs in the background while the test acts as the launcher.
class RequestTest : public CommandTest {
 protected:
  ~RequestTest() override { time_.Run(tasks_.Stop()); }

  void Start(std::vector<std::string> words) {
    tasks_.Spawn("request", Keep(Command(std::move(words)), status_, error_));
  }

  RequestId AwaitRequest() {
    std::vector<RequestId> ids;
    EXPECT_TRUE(time_.RunUntil([&] {
      auto children = zk_.tree().GetChildren("/nodepool/requests");
      return children && !children->names.empty();
    }));
    ids = time_.Run(others_.requests.List());
    return ids.empty() ? RequestId() : ids.front();
  }

  // What a launcher does: ready nodes, then the fulfilled request.
  std::vector<NodeId> Fulfil(const RequestId& id, std::size_t count) {
    std::vector<NodeId> nodes;
    for (std::size_t i = 0; i < count; ++i) {
      Node node = ReadyNode();
      node.allocated_to = id;
      nodes.push_back(AddNode(node));
    }
    ChangeRequest(id, [&](NodeRequest& request) {
      request.nodes = nodes;
      request.SetState(RequestState::kFulfilled, time_.clock().Now());
    });
    return nodes;
  }

  void ChangeRequest(const RequestId& id, const std::function<void(NodeRequest&)>& change) {
    auto lock = time_.Run(others_.requests.TryLock(id));
    ASSERT_TRUE(lock);
    time_.Run(lock->Update([&change](NodeRequest& request) {
      change(request);
      return store::Change::kWrite;
    }));
    time_.Run(lock->Unlock());
  }

  bool AwaitState(const NodeId& id, NodeState state) {
    return time_.RunUntil([&] {
      auto data = zk_.tree().Get("/nodepool/nodes/" + id.value);
      return data &&
             data->data.find("\"state\": \"" + std::string(ToString(state)) + "\"") != std::string::npos;
    });
  }

  bool AwaitEnd() {
    return time_.RunUntil([&] { return status_ || error_; });
  }

  TaskGroup tasks_{time_.loop(), log::Logger("test")};
  std::optional<int> status_;
  std::exception_ptr error_;
};

// coordination.md 12.1, from the request to the return.
TEST_F(RequestTest, UsesTheNodesForTheGivenTime) {
  Start({"request", "small", "large", "--wait", "--hold-for", "5m", "--tenant", "demo"});
  RequestId id = AwaitRequest();
  EXPECT_EQ(id.value, "200-0000000000");
  NodeRequest request = time_.Run(others_.requests.Read(id))->record;
  EXPECT_EQ(request.state, RequestState::kRequested);
  EXPECT_EQ(request.tenant_name, "demo");
  EXPECT_EQ(request.created_time, request.state_time);
  EXPECT_TRUE(time_.Run(others_.requests.Read(id))->revision.is_ephemeral());

  std::vector<NodeId> nodes = Fulfil(id, 2);
  for (const NodeId& node : nodes) ASSERT_TRUE(AwaitState(node, NodeState::kInUse));
  EXPECT_FALSE(Exists("/nodepool/requests/" + id.value));
  for (const NodeId& node : nodes) EXPECT_EQ(time_.Run(others_.nodes.Contenders(node)).size(), 1u);
  time_.RunUntil([&] { return !out_.str().empty(); });
  EXPECT_THAT(out_.str(), HasSubstr("Request 200-0000000000 fulfilled"));
  EXPECT_THAT(out_.str(), HasSubstr("| 0000000001 | small | cloud    | 203.0.113.7 | 22   | zuul     |"));

  time_.Advance(std::chrono::minutes(4));
  EXPECT_FALSE(status_);
  ASSERT_TRUE(AwaitEnd());
  EXPECT_EQ(status_, 0);
  for (const NodeId& node : nodes) {
    EXPECT_EQ(ReadNode(node)->state, NodeState::kUsed);
    EXPECT_THAT(time_.Run(others_.nodes.Contenders(node)), IsEmpty());
  }
}

TEST_F(RequestTest, JsonHasTheHostKeysForALogin) {
  Start({"request", "small", "--wait", "--json"});
  RequestId id = AwaitRequest();
  Node node = ReadyNode();
  node.allocated_to = id;
  node.host_keys = {"ssh-ed25519 AAAA", "ecdsa-sha2-nistp256 BBBB"};
  NodeId node_id = AddNode(node);
  ChangeRequest(id, [&](NodeRequest& request) {
    request.nodes = {node_id};
    request.SetState(RequestState::kFulfilled, time_.clock().Now());
  });
  time_.RunUntil([&] { return !out_.str().empty(); });
  EXPECT_THAT(out_.str(), HasSubstr(R"("host_keys":["ssh-ed25519 AAAA","ecdsa-sha2-nistp256 BBBB"])"));
  tasks_.CancelAll();
  ASSERT_TRUE(AwaitEnd());
}

TEST_F(RequestTest, AnInterruptionGivesTheNodesBack) {
  Start({"request", "small", "--wait"});
  std::vector<NodeId> nodes = Fulfil(AwaitRequest(), 1);
  ASSERT_TRUE(AwaitState(nodes[0], NodeState::kInUse));
  time_.RunUntil([&] { return !out_.str().empty(); });
  tasks_.CancelAll();
  ASSERT_TRUE(AwaitEnd());
  EXPECT_FALSE(error_);
  EXPECT_EQ(status_, 0);
  EXPECT_EQ(ReadNode(nodes[0])->state, NodeState::kUsed);
  EXPECT_THAT(time_.Run(others_.nodes.Contenders(nodes[0])), IsEmpty());
}

TEST_F(RequestTest, AnInterruptionBeforeTheNodesCameWithdrawsTheRequest) {
  Start({"request", "small", "--wait"});
  RequestId id = AwaitRequest();
  time_.Advance(std::chrono::seconds(1));
  tasks_.CancelAll();
  ASSERT_TRUE(AwaitEnd());
  EXPECT_EQ(status_, 1);
  EXPECT_FALSE(Exists("/nodepool/requests/" + id.value));
}

TEST_F(RequestTest, AFailedRequestTellsWhoDeclined) {
  Start({"request", "nobody-has-this", "--wait"});
  RequestId id = AwaitRequest();
  ChangeRequest(id, [&](NodeRequest& request) {
    request.declined_by = {LauncherId("a-PoolWorker.x"), LauncherId("b-PoolWorker.y")};
    request.SetState(RequestState::kFailed, time_.clock().Now());
  });
  ASSERT_TRUE(AwaitEnd());
  ASSERT_TRUE(error_);
  EXPECT_THAT(MessageOf(error_), HasSubstr("failed: declined by a-PoolWorker.x, b-PoolWorker.y"));
  EXPECT_FALSE(Exists("/nodepool/requests/" + id.value));
}

TEST_F(RequestTest, AFailedRequestTellsWhyItWasDeclined) {
  Start({"request", "small", "--wait"});
  RequestId id = AwaitRequest();
  ChangeRequest(id, [&](NodeRequest& request) {
    request.declined_by = {LauncherId("a-PoolWorker.x"), LauncherId("b-PoolWorker.y")};
    AddDeclineReason(request, "fake-cloud main: 6 instances needed, the pool's max-servers is 5");
    AddDeclineReason(request, "static-hosts main: it has no label small");
    request.SetState(RequestState::kFailed, time_.clock().Now());
  });
  ASSERT_TRUE(AwaitEnd());
  ASSERT_TRUE(error_);
  EXPECT_THAT(
      MessageOf(error_),
      HasSubstr("failed: fake-cloud main: 6 instances needed, the pool's max-servers is 5; static-hosts "
                "main: it has no label small"));
}

// All or none (coordination.md 12.1, step 4).
TEST_F(RequestTest, ANodeThatCannotBeLockedReleasesTheOthers) {
  Start({"request", "small", "small", "--wait"});
  RequestId id = AwaitRequest();
  Node node = ReadyNode();
  node.allocated_to = id;
  NodeId first = AddNode(node);
  NodeId second = AddNode(node);
  auto lock = time_.Run(others_.nodes.TryLock(second));
  ChangeRequest(id, [&](NodeRequest& request) {
    request.nodes = {first, second};
    request.SetState(RequestState::kFulfilled, time_.clock().Now());
  });
  SteadyTime start = time_.clock().SteadyNow();
  ASSERT_TRUE(AwaitEnd());
  EXPECT_EQ(time_.clock().SteadyNow() - start, std::chrono::seconds(30));
  ASSERT_TRUE(error_);
  EXPECT_THAT(MessageOf(error_), HasSubstr(second.value));
  EXPECT_EQ(ReadNode(first)->state, NodeState::kReady) << "never in use: back to the pool";
  EXPECT_THAT(time_.Run(others_.nodes.Contenders(first)), IsEmpty());
  EXPECT_FALSE(Exists("/nodepool/requests/" + id.value));
  time_.Run(lock->Unlock());
}

TEST_F(RequestTest, ANodeOfAnotherRequestIsNotUsed) {
  Start({"request", "small", "--wait"});
  RequestId id = AwaitRequest();
  Node node = ReadyNode();
  node.allocated_to = RequestId("200-0000000099");
  NodeId stolen = AddNode(node);
  ChangeRequest(id, [&](NodeRequest& request) {
    request.nodes = {stolen};
    request.SetState(RequestState::kFulfilled, time_.clock().Now());
  });
  ASSERT_TRUE(AwaitEnd());
  ASSERT_TRUE(error_);
  EXPECT_THAT(MessageOf(error_), HasSubstr("200-0000000099"));
  EXPECT_EQ(ReadNode(stolen)->state, NodeState::kReady);
  EXPECT_THAT(time_.Run(others_.nodes.Contenders(stolen)), IsEmpty());
}

TEST_F(RequestTest, ALostSessionEndsTheCommandWithoutAWrite) {
  Start({"request", "small", "--wait"});
  std::vector<NodeId> nodes = Fulfil(AwaitRequest(), 1);
  ASSERT_TRUE(AwaitState(nodes[0], NodeState::kInUse));
  time_.RunUntil([&] { return !out_.str().empty(); });
  zk_.ExpireSession(*our_client_);
  ASSERT_TRUE(AwaitEnd());
  ASSERT_TRUE(error_);
  EXPECT_EQ(VerdictOf(error_), Verdict::kLostSession);
  EXPECT_EQ(ReadNode(nodes[0])->state, NodeState::kInUse) << "the launcher deletes it";
}

TEST_F(RequestTest, ReleaseElsewhereGivesOneNodeBackAndThenTheOther) {
  Start({"request", "small", "small", "--wait"});
  RequestId id = AwaitRequest();
  std::vector<NodeId> nodes = Fulfil(id, 2);
  for (const NodeId& node : nodes) ASSERT_TRUE(AwaitState(node, NodeState::kInUse));

  std::ostringstream elsewhere;
  Context other{{time_.loop(), random_, elsewhere}, others_, config_};
  EXPECT_EQ(time_.Run(CommandOn(other, {"release", nodes[0].value})), 0);
  EXPECT_EQ(elsewhere.str(), "Node " + nodes[0].value + " released\n");
  EXPECT_EQ(ReadNode(nodes[0])->state, NodeState::kUsed);
  EXPECT_EQ(ReadNode(nodes[1])->state, NodeState::kInUse);
  EXPECT_FALSE(status_);

  EXPECT_EQ(time_.Run(CommandOn(other, {"release", id.value})), 0);
  ASSERT_TRUE(AwaitEnd());
  EXPECT_EQ(status_, 0);
  EXPECT_EQ(ReadNode(nodes[1])->state, NodeState::kUsed);
}

TEST_F(RequestTest, WithoutWaitTheRequestStaysUntilReleased) {
  EXPECT_EQ(Run({"request", "small"}), 0);
  EXPECT_EQ(out_.str(), "200-0000000000\n");
  RequestId id("200-0000000000");
  EXPECT_FALSE(time_.Run(others_.requests.Read(id))->revision.is_ephemeral());
  std::vector<NodeId> nodes = Fulfil(id, 1);
  EXPECT_EQ(Run({"release", id.value}), 0);
  EXPECT_EQ(ReadNode(nodes[0])->state, NodeState::kUsed);
  EXPECT_FALSE(Exists("/nodepool/requests/" + id.value));
}

TEST_F(RequestTest, ALabelThatNobodyOffersFailsAtOnce) {
  Put("/nodepool/components/pool/np010000000000",
      R"({"id": "a", "hostname": "np01", "state": "running", "provider_name": "p", "supported_labels": ["small"]})");
  EXPECT_EQ(Run({"request", "small", "smal", "--wait"}), 1);
  EXPECT_EQ(log_.Count("no launcher offers label smal; did you mean small?"), 1);
  EXPECT_FALSE(Exists("/nodepool/requests"));
  EXPECT_EQ(Run({"request", "medium"}), 0);
  EXPECT_EQ(log_.Count("no launcher offers label medium; the request is made all the same"), 1);
  EXPECT_TRUE(Exists("/nodepool/requests/200-0000000000"));
}

TEST_F(RequestTest, ReleaseWithdrawsAWaitingRequest) {
  Run({"request", "small", "--priority", "7"});
  EXPECT_EQ(Run({"release", "007-0000000000"}), 0);
  EXPECT_FALSE(Exists("/nodepool/requests/007-0000000000"));
}

TEST_F(RequestTest, ReleaseLeavesOtherClientsAlone) {
  NodeRequest request;
  request.SetState(RequestState::kFulfilled, FromSeconds(1));
  request.requestor = "zuul";
  RequestId id = time_.Run(others_.requests.Create("200", request, true));
  Node node = ReadyNode();
  node.allocated_to = id;
  NodeId theirs = AddNode(node);
  for (const std::string& name : {id.value, theirs.value, std::string("0000009999"), std::string("nonsense"),
                                  std::string("200-0000009999"), std::string("200-1/../x")}) {
    EXPECT_EQ(Run({"release", name}), 1) << name;
  }
  EXPECT_EQ(log_.Count("belongs to another client (zuul)"), 1);
  EXPECT_EQ(ReadNode(theirs)->state, NodeState::kReady);
  EXPECT_TRUE(Exists("/nodepool/requests/" + id.value));
}

TEST_F(RequestTest, ReleaseWithoutNamesGivesBackWhatIsMine) {
  context_.user = "alice@here";
  Run({"request", "small"});
  Run({"request", "small"});
  Context of_bob = context_;
  of_bob.user = "bob@here";
  time_.Run(CommandOn(of_bob, {"request", "small"}));
  std::vector<NodeId> nodes = Fulfil(RequestId("200-0000000001"), 1);
  Node orphan = ReadyNode();
  orphan.SetState(NodeState::kInUse, FromSeconds(1));
  MarkNode(orphan, RequestId("200-0000000009"), "alice@here");
  NodeId left = AddNode(orphan);

  EXPECT_EQ(Run({"release"}), 1);
  EXPECT_EQ(log_.Count("3 requests match; --yes is missing to release them all"), 1);
  EXPECT_TRUE(Exists("/nodepool/requests/200-0000000000"));
  EXPECT_EQ(Run({"release", "--yes"}), 0);
  EXPECT_FALSE(Exists("/nodepool/requests/200-0000000000"));
  EXPECT_FALSE(Exists("/nodepool/requests/200-0000000001"));
  EXPECT_TRUE(Exists("/nodepool/requests/200-0000000002")) << "of another user";
  EXPECT_EQ(ReadNode(nodes[0])->state, NodeState::kUsed);
  EXPECT_EQ(ReadNode(left)->state, NodeState::kUsed);
  out_.str("");
  EXPECT_EQ(Run({"release"}), 0);
  EXPECT_EQ(out_.str(), "Nothing of alice@here is there to release\n");
}

TEST_F(RequestTest, APersonSeesTheRequestsBeforeTheirRelease) {
  context_.user = "alice@here";
  context_.can_ask = true;
  context_.read_line = []() -> Task<std::string> { co_return "n"; };
  Run({"request", "small", "large"});
  for (int i = 0; i < 2; ++i) {  // both of one request, whose record is gone
    Node node = ReadyNode();
    node.SetState(NodeState::kInUse, FromSeconds(1));
    MarkNode(node, RequestId("200-0000000009"), "alice@here");
    AddNode(node);
  }
  out_.str("");
  EXPECT_EQ(Run({"release"}), 1);
  EXPECT_THAT(out_.str(), HasSubstr("| 200-0000000000 | requested | large,small |"));
  EXPECT_THAT(out_.str(), HasSubstr("| 200-0000000009 | in-use    | small       | 0000000000,0000000001 |"));
  EXPECT_THAT(out_.str(), HasSubstr("Really release these 2 requests? [N/y] "));
  EXPECT_TRUE(Exists("/nodepool/requests/200-0000000000"));
  EXPECT_EQ(Run({"release", "200-0"}), 0) << "what is named is meant";
  out_.str("");
  EXPECT_EQ(Run({"release"}), 0) << "one request is not asked about";
  EXPECT_THAT(out_.str(), ::testing::Not(HasSubstr("[N/y]")));
}

TEST_F(RequestTest, NumbersToReleaseMayBeShort) {
  Run({"request", "small"});
  std::vector<NodeId> nodes = Fulfil(RequestId("200-0000000000"), 1);
  EXPECT_EQ(Run({"release", "0"}), 0);
  EXPECT_EQ(ReadNode(nodes[0])->state, NodeState::kUsed);
  EXPECT_EQ(Run({"release", "200-0"}), 0);
  EXPECT_FALSE(Exists("/nodepool/requests/200-0000000000"));
}

TEST_F(RequestTest, ReleaseOfANodeWhoseHolderDiedMarksItUsed) {
  Node node = ReadyNode();
  node.SetState(NodeState::kInUse, FromSeconds(1));
  MarkNode(node, RequestId("200-0000000001"), "alice@here");
  NodeId orphan = AddNode(node);
  EXPECT_EQ(Run({"release", orphan.value}), 0);
  EXPECT_EQ(ReadNode(orphan)->state, NodeState::kUsed);
}

class RequestDetailTest : public CommandTest {
 protected:
  void SetUp() override {
    NodeRequest request;
    request.SetState(RequestState::kRequested, FromSeconds(1'699'999'940));
    request.node_types = {LabelName("small")};
    request.requestor = "zuul";
    request.tenant_name = "t1";
    id_ = time_.Run(others_.requests.Create("200", std::move(request), false));
    context_.ask_launcher = [this](LauncherAddress launcher, std::string target) {
      return Answer(std::move(launcher.hostname), std::move(target));
    };
    for (const char* hostname : {"np01", "np02"}) AddLauncher(hostname);
    AddLauncher("np01");  // a second process on the same host
  }
  void AddLauncher(const char* hostname) {
    std::string path = fmt::format("/nodepool/components/launcher/{}{:010}", hostname, ++launchers_);
    std::string record =
        fmt::format(R"({{"hostname": "{}", "kind": "launcher", "state": "running"}})", hostname);
    time_.Run(zk::EnsurePath(*others_client_, "/nodepool/components/launcher"));
    zk_.tree().Create({path, record}, 0, time_.clock().Now());
  }
  Task<std::string> Answer(std::string hostname, std::string target) {
    EXPECT_EQ(target, "/api/v1/requests");
    asked_.push_back(hostname);
    if (!answers_.contains(hostname)) throw Error(Verdict::kRetry, "timed out");
    co_return answers_.at(hostname);
  }

  RequestId id_;
  int launchers_ = 0;
  std::vector<std::string> asked_;
  std::map<std::string, std::string> answers_;
};

TEST_F(RequestDetailTest, SaysWhyARequestWaits) {
  answers_["np01"] = fmt::format(
      R"({{"requests":[{{"id":"{}","waits":[{{"provider":"cloud","pool":"main","reason":"tenant-limit",)"
      R"("text":"tenant t1 has 8 of max-servers 8"}},{{"provider":"other","pool":"main",)"
      R"("reason":"others-can-serve","text":"left to cloud main, which has its labels"}}]}}]}})",
      id_);
  Shown({"request-list", "--detail"});
  EXPECT_THAT(asked_, ::testing::UnorderedElementsAre("np01", "np02"));
  EXPECT_THAT(out_.str(),
              HasSubstr("| Age         | Tenant | Waits For                        | Declined Because |"));
  EXPECT_THAT(out_.str(), HasSubstr("| t1     | tenant t1 has 8 of max-servers 8 |"));
  EXPECT_EQ(log_.Count("Why requests wait is not known of all: launcher np02 does not answer: timed out"), 1);
  EXPECT_THAT(Shown({"request-list", "--all-pools"}),
              HasSubstr("| left to cloud main, which has its labels"));
  EXPECT_THAT(ShownAsJson({"request-list", "--detail"}),
              HasSubstr(R"("waits":[{"launcher":"np01","provider":"cloud","pool":"main",)"
                        R"("reason":"tenant-limit","text":"tenant t1 has 8 of max-servers 8"},)"));
}

TEST_F(RequestDetailTest, SaysWhyARequestFailed) {
  NodeRequest request;
  request.SetState(RequestState::kFailed, FromSeconds(1'699'999'940));
  request.node_types = {LabelName("smal")};
  AddDeclineReason(request, "cloud main: it has no label smal; did you mean small?");
  AddDeclineReason(request, "hosts main: it has no label smal");
  time_.Run(others_.requests.Create("200", std::move(request), false));
  EXPECT_THAT(Shown({"request-list", "--detail"}),
              AllOf(HasSubstr("| cloud main: it has no label smal; did you mean small? |"),
                    HasSubstr("| hosts main: it has no label smal                      |")));
  EXPECT_THAT(ShownAsJson({"request-list", "--detail"}),
              HasSubstr(R"("decline_reasons":["cloud main: it has no label smal; did you mean small?",)"
                        R"("hosts main: it has no label smal"])"));
}

TEST_F(RequestDetailTest, RequestsThatFailedAndAreDeletedFollow) {
  answers_["np01"] = R"({"requests":[{"id":"100-0000000042","state":"failed","age":90,"labels":["large"],)"
                     R"("requestor":"zuul","tenant":"t2","priority":3,"event_id":"e1","nodes":[],)"
                     R"("declined_by":["np01-x"],"waits":[],"decline_reasons":["cloud main: it is full"],)"
                     R"("is_deleted":true}]})";
  answers_["np02"] = answers_["np01"];
  std::string json = ShownAsJson({"request-list", "--detail"});
  EXPECT_THAT(json, HasSubstr(R"({"id":"100-0000000042","relative_priority":3,"state":"failed",)"
                              R"("requestor":"zuul","node_types":["large"],"nodes":[],)"
                              R"("declined_by":["np01-x"],"event_id":"e1",)"));
  EXPECT_THAT(json, HasSubstr(R"("decline_reasons":["cloud main: it is full"])"));
  EXPECT_LT(json.find(id_.value), json.find("100-0000000042"));
  EXPECT_EQ(json.find("100-0000000042"), json.rfind("100-0000000042")) << "both launchers remember it";
}

TEST_F(RequestDetailTest, TheListStandsWhateverLaunchersAnswer) {
  for (const char* answer : {"", "[]", "{}", R"({"requests":[1]})", R"({"requests":[{"id":"x"}]})",
                             R"({"requests":[{"id":"x","waits":[1]}]})"}) {
    answers_["np01"] = answer;
    int complaints = log_.Count("Why requests wait is not known of all: launcher np01");
    EXPECT_THAT(Shown({"request-list", "--detail"}), HasSubstr(id_.value));
    EXPECT_EQ(log_.Count("Why requests wait is not known of all: launcher np01"), complaints + 1) << answer;
  }
}

}  // namespace

}  // namespace nodepool::cli
