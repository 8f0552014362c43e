#include "sched/nodes/node_life.h"

#include <gtest/gtest.h>

#include <limits>

namespace nodepool::sched {
namespace {

using namespace std::chrono_literals;

const WallTime kEntered = FromSeconds(1'700'000'000);
const LabelName kOneLabel("small");
const LabelName kOtherLabel("large");

Node NodeEntering(NodeState state) {
  Node node;
  node.SetState(state, kEntered);
  node.provider = ProviderName("cloud");
  node.type = {kOneLabel, kOtherLabel};
  return node;
}

// launcher.md 18, BB-17
TEST(NodeLifeTest, WhichUnlockedNodesAreGarbage) {
  for (NodeState dead : {NodeState::kUsed, NodeState::kInUse, NodeState::kBuilding, NodeState::kFailed,
                         NodeState::kDeleting, NodeState::kDeleted, NodeState::kAborted})
    EXPECT_TRUE(IsGarbageWhenUnlocked(dead)) << ToString(dead);
  for (NodeState kept : {NodeState::kInit, NodeState::kTesting, NodeState::kReady, NodeState::kHold})
    EXPECT_FALSE(IsGarbageWhenUnlocked(kept)) << ToString(kept);
}

// launcher.md 22.4, BB-29
TEST(NodeLifeTest, TheSmallestReadyAgeOfItsLabelsEndsAFreeNode) {
  Node node = NodeEntering(NodeState::kReady);
  std::map<LabelName, Duration> limits;
  auto is_past = [&](Duration age) {
    auto limit_of = [&](const LabelName& label) {
      auto limit = limits.find(label);
      return limit == limits.end() ? std::nullopt : std::optional(limit->second);
    };
    return IsPastReadyAge(node, limit_of, kEntered + age);
  };
  EXPECT_FALSE(is_past(24h)) << "no label has a limit";
  limits = {{kOneLabel, 1000s}};
  EXPECT_FALSE(is_past(999s));
  EXPECT_TRUE(is_past(1000s));
  limits[kOtherLabel] = 10s;
  EXPECT_FALSE(is_past(9s));
  EXPECT_TRUE(is_past(10s));
  node.allocated_to = RequestId("200-0000000001");
  EXPECT_FALSE(is_past(24h)) << "a request has it";
  node = NodeEntering(NodeState::kInUse);
  EXPECT_FALSE(is_past(24h));
}

// launcher.md 22.5
TEST(NodeLifeTest, TheSmallerLimitEndsAHold) {
  Node node = NodeEntering(NodeState::kHold);
  EXPECT_FALSE(IsPastHoldAge(node, std::nullopt, kEntered + 24h));
  EXPECT_FALSE(IsPastHoldAge(node, 60s, kEntered + 59s));
  EXPECT_TRUE(IsPastHoldAge(node, 60s, kEntered + 60s));
  node.hold_expiration = 0;
  EXPECT_FALSE(IsPastHoldAge(node, std::nullopt, kEntered + 24h)) << "0 is no limit";
  EXPECT_FALSE(IsPastHoldAge(node, 60s, kEntered + 59s));
  node.hold_expiration = 30;
  EXPECT_FALSE(IsPastHoldAge(node, std::nullopt, kEntered + 29s));
  EXPECT_TRUE(IsPastHoldAge(node, std::nullopt, kEntered + 30s));
  EXPECT_TRUE(IsPastHoldAge(node, 60s, kEntered + 30s)) << "its own is the smaller";
  EXPECT_TRUE(IsPastHoldAge(node, 10s, kEntered + 10s)) << "the configured one is the smaller";
  node.hold_expiration = std::numeric_limits<std::int64_t>::max();
  EXPECT_FALSE(IsPastHoldAge(node, std::nullopt, kEntered + 365 * 24h));
  EXPECT_TRUE(IsPastHoldAge(node, std::nullopt, kEntered + 366 * 24h)) << "no hold is longer than a year";
  node.state = NodeState::kReady;
  EXPECT_FALSE(IsPastHoldAge(node, 60s, kEntered + 24h));
}

// launcher.md 22.8
TEST(NodeLifeTest, ALaunchIsUnfinishedWithoutAPendingRequestOrWhenItIsOld) {
  Node node = NodeEntering(NodeState::kInit);
  NodeRequest request;
  request.state = RequestState::kPending;
  EXPECT_FALSE(IsUnfinished(node, &request, 5min, kEntered + 299s));
  EXPECT_TRUE(IsUnfinished(node, &request, 5min, kEntered + 300s));
  EXPECT_TRUE(IsUnfinished(node, nullptr, 5min, kEntered));
  for (RequestState over : {RequestState::kRequested, RequestState::kFulfilled, RequestState::kFailed}) {
    request.state = over;
    EXPECT_TRUE(IsUnfinished(node, &request, 5min, kEntered)) << ToString(over);
  }
  EXPECT_FALSE(IsUnfinished(NodeEntering(NodeState::kBuilding), nullptr, 5min, kEntered + 24h));
  EXPECT_FALSE(IsUnfinished(Node(), nullptr, 5min, kEntered + 24h)) << "without a state";
}

// launcher.md 22.9
TEST(NodeLifeTest, DeadRecordsWithoutAProviderAreOwnerless) {
  for (NodeState dead : {NodeState::kInit, NodeState::kUsed, NodeState::kDeleting}) {
    Node node = NodeEntering(dead);
    EXPECT_FALSE(IsOwnerless(node, 5min, kEntered + 24h)) << "its provider deletes it";
    node.provider = ProviderName();
    EXPECT_FALSE(IsOwnerless(node, 5min, kEntered + 299s)) << ToString(dead);
    EXPECT_TRUE(IsOwnerless(node, 5min, kEntered + 300s)) << ToString(dead);
  }
  Node held = NodeEntering(NodeState::kHold);
  held.provider = ProviderName();
  EXPECT_FALSE(IsOwnerless(held, 5min, kEntered + 24h));
  EXPECT_FALSE(IsOwnerless(Node(), 5min, kEntered + 24h)) << "without a state";
}

}  // namespace
}  // namespace nodepool::sched
