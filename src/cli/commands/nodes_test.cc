
#include <gmock/gmock.h>

#include "cli/fixture_for_test.h"

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

}  // namespace

}  // namespace nodepool::cli
