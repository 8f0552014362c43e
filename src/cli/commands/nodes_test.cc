#include <gmock/gmock.h>

#include "cli/fixture_for_test.h"
#include "model/node_request.h"

namespace nodepool::cli {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class NodeSelectionTest : public CommandTest {
 protected:
  NodeSelectionTest() {
    AddNode(ReadyNode());
    Node other = ReadyNode();
    other.provider = ProviderName("elsewhere");
    AddNode(other);
    AddNode(ReadyNode());
  }

  // Deletes the nodes of the provider that are ready.
  int DeleteOf(const std::string& provider) {
    return Run({"delete", "--provider", provider, "--state", "ready"});
  }
  std::vector<std::string> Deleted() {
    std::vector<std::string> ids;
    for (const char* id : {"0000000000", "0000000001", "0000000002"}) {
      if (ReadNode(NodeId(id))->state == NodeState::kDeleting) ids.emplace_back(id);
    }
    return ids;
  }
  void Answer(const std::string& line) {
    context_.can_ask = true;
    context_.read_line = [line] { return Line(line); };
  }
  static Task<std::string> Line(std::string line) { co_return line; }
};

TEST_F(NodeSelectionTest, GivenIdsAreTakenAsTheyAre) {
  EXPECT_EQ(Run({"delete", "7", "bogus", "2"}), 1);
  EXPECT_EQ(log_.Count("Node id 0000000007 not found"), 1);
  EXPECT_EQ(log_.Count("Node id bogus not found"), 1);
  EXPECT_THAT(Deleted(), ElementsAre("0000000002"));
}

TEST_F(NodeSelectionTest, OneThatMatchesNeedsNoConfirmation) {
  EXPECT_EQ(DeleteOf("elsewhere"), 0);
  EXPECT_THAT(Deleted(), ElementsAre("0000000001"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("[N/y]")));
}

TEST_F(NodeSelectionTest, WhenNoneMatchesItIsSaid) {
  EXPECT_EQ(DeleteOf("nowhere"), 0);
  EXPECT_THAT(Deleted(), IsEmpty());
  EXPECT_EQ(out_.str(), "No node matches\n");
  EXPECT_EQ(log_.Count("nowhere is not configured, and there are no records of it"), 1);
}

TEST_F(NodeSelectionTest, SeveralNeedYesWhereNobodyCanAnswer) {
  EXPECT_EQ(DeleteOf("cloud"), 1);
  EXPECT_EQ(log_.Count("2 nodes match; --yes is missing to delete them all"), 1);
  EXPECT_THAT(Deleted(), IsEmpty());
  EXPECT_EQ(Run({"delete", "--provider", "cloud", "--yes"}), 0);
  EXPECT_THAT(Deleted(), ElementsAre("0000000000", "0000000002"));
}

TEST_F(NodeSelectionTest, APersonIsShownThemAndAsked) {
  Answer("");
  EXPECT_EQ(DeleteOf("cloud"), 1);
  EXPECT_THAT(Deleted(), IsEmpty());
  EXPECT_THAT(out_.str(), HasSubstr("| 0000000002 |"));
  EXPECT_THAT(out_.str(), HasSubstr("Really delete these 2 nodes? [N/y] "));
  Answer("y");
  EXPECT_EQ(DeleteOf("cloud"), 0);
  EXPECT_THAT(Deleted(), ElementsAre("0000000000", "0000000002"));
}

class ChangeNodeTest : public CommandTest {};

// operations.5.5.
TEST_F(ChangeNodeTest, SetsTheStateUnderTheLock) {
  NodeId id = AddNode(ReadyNode());
  EXPECT_EQ(Run({"hold", id.value}), 0);
  std::optional<Node> node = ReadNode(id);
  EXPECT_EQ(node->state, NodeState::kHold);
  EXPECT_EQ(node->state_time, time_.clock().Now());
  EXPECT_EQ(node->interface_ip, "203.0.113.7");
  EXPECT_THAT(time_.Run(others_.nodes.Contenders(id)), ::testing::IsEmpty());
  EXPECT_THAT(out_.str(),
              HasSubstr("| 0000000000 | cloud    | small | i-1       |             |      | hold  |"));
}

// operations.13.3: only a reason that is given replaces what is there.
TEST_F(ChangeNodeTest, AHoldHasAReason) {
  NodeId id = AddNode(ReadyNode());
  Run({"hold", id.value, "--reason", "bug 1234", "--for", "1h"});
  EXPECT_EQ(ReadNode(id)->comment, "bug 1234");
  EXPECT_EQ(ReadNode(id)->hold_expiration, 3600);
  Run({"hold", id.value});
  EXPECT_EQ(ReadNode(id)->comment, "bug 1234");
  Run({"hold", id.value, "--reason", ""});
  EXPECT_EQ(ReadNode(id)->comment, "");
}

// ACT-9
TEST_F(ChangeNodeTest, AHeldNodeIsGivenBack) {
  NodeId held = AddNode(ReadyNode());
  NodeId ready = AddNode(ReadyNode());
  Run({"hold", held.value});
  EXPECT_EQ(Run({"unhold", held.value, ready.value}), 1);
  EXPECT_EQ(ReadNode(held)->state, NodeState::kUsed);
  EXPECT_EQ(ReadNode(ready)->state, NodeState::kReady);
  EXPECT_EQ(log_.Count("Node 0000000001 is not held"), 1);
}

TEST_F(ChangeNodeTest, LeadingZerosMayBeLeftOut) {
  NodeId id = AddNode(ReadyNode());
  EXPECT_EQ(Run({"hold", "0"}), 0);
  EXPECT_EQ(ReadNode(id)->state, NodeState::kHold);
}

TEST_F(ChangeNodeTest, SeveralNodesAreChangedAlthoughOneIsLocked) {
  NodeId first = AddNode(ReadyNode());
  NodeId locked = AddNode(ReadyNode());
  NodeId last = AddNode(ReadyNode());
  auto lock = time_.Run(others_.nodes.TryLock(locked));
  EXPECT_EQ(Run({"delete", "0", "1", "2", "3"}), 1);
  EXPECT_EQ(ReadNode(first)->state, NodeState::kDeleting);
  EXPECT_EQ(ReadNode(locked)->state, NodeState::kReady);
  EXPECT_EQ(ReadNode(last)->state, NodeState::kDeleting);
  EXPECT_EQ(log_.Count("Node id 0000000003 not found"), 1);
  EXPECT_THAT(out_.str(), HasSubstr("| 0000000002 |"));
  EXPECT_THAT(out_.str(), ::testing::Not(HasSubstr("| 0000000001 |")));
  time_.Run(lock->Unlock());
}

TEST_F(ChangeNodeTest, AMissingNodeIsAnError) {  // D-66
  for (const char* id : {"0000000042", "", "bogus", "../../etc", "00000000420"}) {
    EXPECT_EQ(Run({"delete", id}), 1);
    EXPECT_EQ(log_.Count(std::string("Node id ") + id + " not found"), 1);
  }
  EXPECT_EQ(out_.str(), "");
  EXPECT_FALSE(Exists("/nodepool"));
}

// coordination.17.42
TEST_F(ChangeNodeTest, ALockedNodeIsAnErrorAfterFiveSeconds) {
  NodeId id = AddNode(ReadyNode());
  auto lock = time_.Run(others_.nodes.TryLock(id));
  SteadyTime start = time_.clock().SteadyNow();
  EXPECT_EQ(Run({"hold", id.value}), 1);
  EXPECT_EQ(log_.Count("Timeout trying to acquire lock /nodepool/nodes/0000000000/lock"), 1);
  EXPECT_EQ(time_.clock().SteadyNow() - start, kLockTimeout);
  EXPECT_EQ(ReadNode(id)->state, NodeState::kReady);
  EXPECT_EQ(time_.Run(others_.nodes.Contenders(id)).size(), 1u);
  time_.Run(lock->Unlock());
}

class JobsCommandTest : public CommandTest {
 protected:
  std::string Create(std::string name, std::optional<std::int64_t> limit) {
    out_.str("");
    std::vector<std::string> words = {"job-create", std::move(name)};
    if (limit) words.insert(words.end(), {"--hold-on-failure", std::to_string(*limit)});
    EXPECT_EQ(Run(std::move(words)), 0);
    return out_.str();
  }
  int Delete(std::string id) { return Run({"job-delete", "--", std::move(id)}); }
};

// operations.13.5
TEST_F(JobsCommandTest, Golden) {
  EXPECT_EQ(Shown({"job-list"}),
            "+----+------+-----------------+\n"
            "| ID | Name | Hold on Failure |\n"
            "+----+------+-----------------+\n"
            "+----+------+-----------------+\n");
  EXPECT_FALSE(Exists("/nodepool"));
  Create("unit-py27", 2);
  Create("^unit-", std::nullopt);
  EXPECT_EQ(Create("unit-py28", 0),
            "+----+-----------+-----------------+\n"
            "| ID | Name      | Hold on Failure |\n"
            "+----+-----------+-----------------+\n"
            "| 0  | unit-py27 | 2               |\n"
            "| 1  | ^unit-    | None            |\n"
            "| 2  | unit-py28 | 0               |\n"
            "+----+-----------+-----------------+\n");
  EXPECT_EQ(
      ShownAsJson({"job-list"}),
      R"([{"id":0,"name":"unit-py27","hold_on_failure":2},{"id":1,"name":"^unit-","hold_on_failure":null},)"
      R"({"id":2,"name":"unit-py28","hold_on_failure":0}])"
      "\n");
}

// operations.13.5
TEST_F(JobsCommandTest, ARuleThatExistsIsNotMadeAgain) {
  std::string listed = Create("unit", 2);
  EXPECT_EQ(Create("unit", 2), listed);
  EXPECT_EQ(log_.Count("Rule 0 for unit exists already"), 1);
  EXPECT_EQ(Run({"job-create", "unit", "--hold-on-failure", "3"}), 1);
  EXPECT_EQ(log_.Count("Rule 0 for unit exists, and would apply before the new one; job-delete 0 first"), 1);
  EXPECT_FALSE(Exists("/nodepool/jobs/0000000001"));
}

// operations.16.25
TEST_F(JobsCommandTest, DeletesByNumber) {
  Create("a", 1);
  Create("b", 1);
  Put("/nodepool/jobs/holds", "");
  for (std::string none : {"99", "-1", "", "a", "holds", "99999999999", "0000000000/x"})
    EXPECT_EQ(Delete(none), 1) << none;
  EXPECT_EQ(log_.Count("Job 99 not found"), 1);
  EXPECT_EQ(Delete("1"), 0);
  EXPECT_EQ(Delete("1"), 1);
  EXPECT_FALSE(Exists("/nodepool/jobs/0000000001"));
  EXPECT_EQ(Delete("0000000000"), 0);
  EXPECT_TRUE(Exists("/nodepool/jobs/holds"));
}

TEST_F(JobsCommandTest, NamesThatCannotBeMeant) {
  Create("unit", {});
  Create("^unit-(a|b)$", {});
  auto refusal = [this](std::string name) {
    Outcome<int> created = time_.Run(Attempt(Command({"job-create", std::move(name)})));
    return created ? "" : created.error().message();
  };
  EXPECT_THAT(refusal("^("), HasSubstr("not a regular expression"));
  for (std::string bad : {std::string(), std::string("\xff"), std::string(256, 'a')})
    EXPECT_THAT(refusal(bad), HasSubstr("NAME"));
}

// What `nodepool runners` prints about sets of runners and their jobs.

using ::testing::HasSubstr;
using ::testing::Not;

// One set with a job that waits, one that runs, one that was lost, and a runner that has no node yet.
class RunnersCommandTest : public CommandTest {
 protected:
  void SetUp() override {
    Put("/nodepool/runners/sets/octo/small",
        R"({"state": "listening", "since": 1699999000, "waiting": 1, "max_runners": 4, "why": "1 of their nodes are requested", )"
        R"("jobs": [{"request": 7, "repository": "octo/app", "workflow": ".github/workflows/ci.yaml", "job": "test", )"
        R"("queued_time": 1699999990}], "lost": [{"repository": "octo/lib", "job": "build", "node": "0000000009", )"
        R"("reason": "its node is gone", "time": 1699999000}]})");
    Put("/nodepool/runners/runs/00000001",
        R"({"state": "job", "service": "octo", "set": "small", "runner_name": "np-1", "node": "0000000004", )"
        R"("repository": "octo/app", "job": "build", "run_url": "https://github.com/octo/app/actions/runs/1", "job_time": 1699999700})");
    Put("/nodepool/runners/runs/00000002",
        R"({"state": "wanted", "service": "octo", "set": "small", "runner_name": "np-2", "lease": "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee", )"
        R"("created_time": 1699999995})");
    context_.ask_launcher = [](LauncherAddress, std::string) -> Task<std::string> {
      co_return R"({"requests":[{"id":"200-0000000000","waits":[{"provider":"cloud","pool":"main","reason":"capacity","text":"uses 2 of 2 cores"}]}]})";
    };
  }
  void AddWaitingRequest() {
    Put("/nodepool/components/launcher/np010000000000",
        R"({"hostname": "np01", "state": "running", "version": "0.1.0"})");
    Lease lease;
    lease.client = "runners:octo";
    lease.labels = {LabelName("small")};
    NodeRequest request = RequestFor(LeaseId(std::string(32, 'e')), lease, FromSeconds(1'699'999'995));
    time_.Run(others_.requests.Create("200", std::move(request), false));
  }
};

// RUN-73
TEST_F(RunnersCommandTest, SetsAndTheirJobs) {
  std::string shown = Shown({"runners", "--wide"});
  EXPECT_THAT(shown, HasSubstr("octo/small"));
  EXPECT_THAT(shown, HasSubstr("1 of their nodes are requested"));
  EXPECT_THAT(shown, HasSubstr("its node is gone"));
  EXPECT_THAT(shown, HasSubstr("https://github.com/octo/app/actions/runs/1"));
  EXPECT_THAT(
      ShownAsJson({"runners"}),
      HasSubstr(R"("repository":"octo/app","job":"build","workflow":null,"node":"0000000004","why":null)"));
}

// RUN-42, RUN-73
TEST_F(RunnersCommandTest, WhyARunnerHasNoNodeIsAsLaunchersSay) {
  EXPECT_THAT(Shown({"runners", "--wide"}), HasSubstr("a node is requested"));
  AddWaitingRequest();
  EXPECT_THAT(Shown({"runners", "--wide"}), HasSubstr("cloud main uses 2 of 2 cores"));
}

// RUN-73: names come from strangers.
TEST_F(RunnersCommandTest, HostileNamesObeyNobody) {
  Put("/nodepool/runners/runs/00000003",
      R"({"state": "job", "service": "octo", "set": "sm\u001b[2Jall", "runner_name": "np-3", "node": "0000000004\n", )"
      R"("repository": "octo/\u202eapp", "job": "b\u001b]0;x\u0007\nERROR all is lost", "workflow": "\u0000", )"
      R"("run_url": "https://x/\r\n"})");
  for (const std::string& shown :
       {Shown({"runners", "--wide"}), Shown({"status"}), Shown({"list", "--detail"})}) {
    for (const char* bad : {"\x1b", "\x07", "\r", "\xe2\x80\xae", "\nERROR"})
      EXPECT_THAT(shown, Not(HasSubstr(bad)));
  }
  EXPECT_THAT(Shown({"runners", "--wide"}), HasSubstr("\\x1b]0;x\\x07"));
}

// RUN-53, RUN-73
TEST_F(RunnersCommandTest, TheStatusNamesLostJobs) {
  EXPECT_THAT(
      Shown({"status"}),
      HasSubstr("- The job build of octo/lib was lost on node 0000000009: its node is gone\n"
                "  Run it again in the service, which fails it after some minutes and does not repeat it\n"));
}

}  // namespace

}  // namespace nodepool::cli
