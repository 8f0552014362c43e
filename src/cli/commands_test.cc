#include <gmock/gmock.h>

#include "cli/change_node.h"
#include "cli/fixture_test.h"
#include "cli/info.h"
#include "cli/list.h"
#include "cli/request_list.h"

namespace nodepool::cli {
namespace {

using ::testing::HasSubstr;

class ListTest : public CommandTest {};
class ChangeNodeTest : public CommandTest {};

// operations.md 16.2.
TEST_F(ListTest, AnEmptyTreeGivesHeadersAndIsNotWrittenTo) {
  std::uint64_t before = our_writes();
  EXPECT_EQ(time_.Run(List(context_, listing::NodeColumns::kBrief, Output::kTable)), 0);
  EXPECT_EQ(out_.str(),
            "+----+----------+-------+-----------+-------------+------+-------+-----+--------+\n"
            "| ID | Provider | Label | Server ID | Public IPv4 | IPv6 | State | Age | Locked |\n"
            "+----+----------+-------+-----------+-------------+------+-------+-----+--------+\n"
            "+----+----------+-------+-----------+-------------+------+-------+-----+--------+\n");
  EXPECT_EQ(our_writes(), before);
  EXPECT_FALSE(Exists("/nodepool"));
}

TEST_F(ListTest, LockedNodesAreShownAsSuchWithoutAWrite) {
  NodeId first = AddNode(ReadyNode());
  NodeId second = AddNode(ReadyNode());
  auto lock = time_.Run(others_.TryLockNode(second));
  std::uint64_t before = our_writes();
  EXPECT_EQ(time_.Run(List(context_, listing::NodeColumns::kBrief, Output::kJson)), 0);
  EXPECT_THAT(out_.str(),
              HasSubstr("\"id\":\"" + first.value + "\",\"provider\":\"cloud\",\"label\":[\"small\"]"));
  EXPECT_THAT(out_.str(), HasSubstr("\"locked\":\"unlocked\"},{\"id\":\"" + second.value));
  EXPECT_THAT(out_.str(), HasSubstr("\"locked\":\"locked\"}]"));
  EXPECT_EQ(our_writes(), before);
  EXPECT_FALSE(Exists("/nodepool/nodes/" + first.value + "/lock"));
  time_.Run(lock->Unlock());
}

// operations.md 5.10: one bad record hides no other.
TEST_F(ListTest, UnreadableRecordsAreReportedAndLeftOut) {
  NodeId good = AddNode(ReadyNode());
  zk_.tree().Create({"/nodepool/nodes/0000000077", "{broken"}, 0, time_.clock().Now());
  zk_.tree().Create({"/nodepool/nodes/0000000078", ""}, 0, time_.clock().Now());
  zk_.tree().Create({"/nodepool/requests", ""}, 0, time_.clock().Now());
  zk_.tree().Create({"/nodepool/requests/200-0000000005", "[]"}, 0, time_.clock().Now());
  EXPECT_EQ(time_.Run(List(context_, listing::NodeColumns::kBrief, Output::kJson)), 0);
  EXPECT_THAT(out_.str(), HasSubstr(good.value));
  EXPECT_THAT(out_.str(), Not(HasSubstr("000000007")));
  EXPECT_EQ(log_.Count("0000000077"), 1);
  EXPECT_EQ(time_.Run(RequestList(context_, RequestColumns::kBrief, Output::kJson)), 0);
  EXPECT_EQ(log_.Count("200-0000000005"), 1);
}

TEST_F(ListTest, RequestsAreSortedById) {
  NodeRequest request;
  request.SetState(RequestState::kRequested, FromSeconds(1'700'000'000));
  request.node_types = {LabelName("a"), LabelName("b")};
  request.declined_by = {LauncherId("l1")};
  request.requestor = "zuul";
  request.event_id = "e1";
  time_.Run(others_.CreateRequest("300", request, true));
  request.relative_priority = 7;
  time_.Run(others_.CreateRequest("100", request, true));
  EXPECT_EQ(time_.Run(RequestList(context_, RequestColumns::kBrief, Output::kTable)), 0);
  EXPECT_EQ(
      out_.str(),
      "+----------------+----------+-----------+-----------+------------+-------+-------------+----------+\n"
      "| Request ID     | Priority | State     | Requestor | Node Types | Nodes | Declined By | Event ID |\n"
      "+----------------+----------+-----------+-----------+------------+-------+-------------+----------+\n"
      "| 100-0000000001 | 7        | requested | zuul      | a,b        |       | l1          | e1       |\n"
      "| 300-0000000000 | 0        | requested | zuul      | a,b        |       | l1          | e1       |\n"
      "+----------------+----------+-----------+-----------+------------+-------+-------------+----------+"
      "\n");
}

// operations.md 5.4.
TEST_F(ListTest, InfoShowsOneProvider) {
  NodeId node = AddNode(ReadyNode());
  Node other = ReadyNode();
  other.provider = ProviderName("elsewhere");
  AddNode(other);
  EXPECT_EQ(time_.Run(Info(context_, ProviderName("cloud"), Output::kTable)), 0);
  EXPECT_EQ(out_.str(),
            "ZooKeeper data for provider cloud\n"
            "\n"
            "Image data:\n"
            "+------------+----------+------------+\n"
            "| Image Name | Build ID | Upload IDs |\n"
            "+------------+----------+------------+\n"
            "+------------+----------+------------+\n"
            "\n"
            "Nodes:\n"
            "+------------+-----------+\n"
            "| ID         | Server ID |\n"
            "+------------+-----------+\n"
            "| 0000000000 | i-1       |\n"
            "+------------+-----------+\n");
  EXPECT_EQ(node.value, "0000000000");
}

// operations.md 5.5.
TEST_F(ChangeNodeTest, SetsTheStateUnderTheLock) {
  NodeId id = AddNode(ReadyNode());
  EXPECT_EQ(time_.Run(ChangeNode(context_, id.value, NodeState::kHold)), 0);
  std::optional<Node> node = ReadNode(id);
  EXPECT_EQ(node->state, NodeState::kHold);
  EXPECT_EQ(node->state_time, time_.clock().Now());
  EXPECT_EQ(node->interface_ip, "203.0.113.7");
  EXPECT_THAT(time_.Run(others_.NodeContenders(id)), ::testing::IsEmpty());
  EXPECT_THAT(out_.str(),
              HasSubstr("| 0000000000 | cloud    | small | i-1       |             |      | hold  |"));
}

// operations.13.3: only a reason that is given replaces what is there.
TEST_F(ChangeNodeTest, AHoldHasAReason) {
  NodeId id = AddNode(ReadyNode());
  time_.Run(ChangeNode(context_, id.value, NodeState::kHold, "bug 1234"));
  EXPECT_EQ(ReadNode(id)->comment, "bug 1234");
  time_.Run(ChangeNode(context_, id.value, NodeState::kHold));
  EXPECT_EQ(ReadNode(id)->comment, "bug 1234");
  time_.Run(ChangeNode(context_, id.value, NodeState::kHold, ""));
  EXPECT_EQ(ReadNode(id)->comment, "");
}

TEST_F(ChangeNodeTest, AMissingNodeIsReportedWithStatusZero) {  // D-66
  for (const char* id : {"0000000042", "", "bogus", "../../etc", "00000000420"}) {
    out_.str("");
    EXPECT_EQ(time_.Run(ChangeNode(context_, id, NodeState::kDeleting)), 0);
    EXPECT_EQ(out_.str(), std::string("Node id ") + id + " not found\n");
  }
  EXPECT_FALSE(Exists("/nodepool"));
}

// coordination.17.42
TEST_F(ChangeNodeTest, ALockedNodeIsAnErrorAfterFiveSeconds) {
  NodeId id = AddNode(ReadyNode());
  auto lock = time_.Run(others_.TryLockNode(id));
  SteadyTime start = time_.clock().SteadyNow();
  try {
    time_.Run(ChangeNode(context_, id.value, NodeState::kHold));
    FAIL() << "the lock was taken";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("Timeout trying to acquire lock /nodepool/nodes/0000000000/lock"));
  }
  EXPECT_EQ(time_.clock().SteadyNow() - start, kLockTimeout);
  EXPECT_EQ(ReadNode(id)->state, NodeState::kReady);
  EXPECT_EQ(time_.Run(others_.NodeContenders(id)).size(), 1u);
  time_.Run(lock->Unlock());
}

class RequestDetailTest : public CommandTest {
 protected:
  void SetUp() override {
    NodeRequest request;
    request.SetState(RequestState::kRequested, FromSeconds(1'699'999'940));
    request.node_types = {LabelName("small")};
    request.requestor = "zuul";
    request.tenant_name = "t1";
    id_ = time_.Run(others_.CreateRequest("200", std::move(request), false));
    context_.ask_launcher = [this](std::string hostname, std::string target) {
      return Answer(std::move(hostname), std::move(target));
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
      R"("text":"the tenant's limit is reached: cores"}}]}}]}})",
      id_);
  EXPECT_EQ(time_.Run(RequestList(context_, RequestColumns::kDetail, Output::kTable)), 0);
  EXPECT_THAT(asked_, ::testing::UnorderedElementsAre("np01", "np02"));
  EXPECT_THAT(out_.str(),
              HasSubstr("| Age         | Tenant | Waits For                                        |"));
  EXPECT_THAT(out_.str(), HasSubstr("| t1     | cloud main: the tenant's limit is reached: cores |"));
  EXPECT_EQ(
      log_.Count("The launcher on np02 is not reachable, so why its requests wait is not known: timed out"),
      1);
  out_.str("");
  EXPECT_EQ(time_.Run(RequestList(context_, RequestColumns::kDetail, Output::kJson)), 0);
  EXPECT_THAT(out_.str(),
              HasSubstr(R"("waits":[{"launcher":"np01","provider":"cloud","pool":"main",)"
                        R"("reason":"tenant-limit","text":"the tenant's limit is reached: cores"}])"));
}

TEST_F(RequestDetailTest, TheListStandsWhateverLaunchersAnswer) {
  for (const char* answer : {"", "[]", "{}", R"({"requests":[1]})", R"({"requests":[{"id":"x"}]})",
                             R"({"requests":[{"id":"x","waits":[1]}]})"}) {
    answers_["np01"] = answer;
    out_.str("");
    int complaints = log_.Count("The launcher on np01");
    EXPECT_EQ(time_.Run(RequestList(context_, RequestColumns::kDetail, Output::kTable)), 0);
    EXPECT_THAT(out_.str(), HasSubstr(id_.value));
    EXPECT_EQ(log_.Count("The launcher on np01"), complaints + 1) << answer;
  }
}

}  // namespace
}  // namespace nodepool::cli
