#include "cli/commands/change_node.h"

#include <gmock/gmock.h>

#include "cli/fixture_for_test.h"

namespace nodepool::cli {
namespace {

using ::testing::HasSubstr;

class ChangeNodeTest : public CommandTest {};

// operations.5.5.
TEST_F(ChangeNodeTest, SetsTheStateUnderTheLock) {
  NodeId id = AddNode(ReadyNode());
  EXPECT_EQ(time_.Run(ChangeNode(context_, id.value, NodeState::kHold)), 0);
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
  auto lock = time_.Run(others_.nodes.TryLock(id));
  SteadyTime start = time_.clock().SteadyNow();
  try {
    time_.Run(ChangeNode(context_, id.value, NodeState::kHold));
    FAIL() << "the lock was taken";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("Timeout trying to acquire lock /nodepool/nodes/0000000000/lock"));
  }
  EXPECT_EQ(time_.clock().SteadyNow() - start, kLockTimeout);
  EXPECT_EQ(ReadNode(id)->state, NodeState::kReady);
  EXPECT_EQ(time_.Run(others_.nodes.Contenders(id)).size(), 1u);
  time_.Run(lock->Unlock());
}

}  // namespace
}  // namespace nodepool::cli
