#include "sched/leases/lease_step.h"

#include <gtest/gtest.h>

namespace nodepool::sched {
namespace {

Lease InState(LeaseState state) {
  Lease lease;
  lease.state = state;
  lease.request = RequestId("200-0000000001");
  lease.nodes = {NodeId("0000000001"), NodeId("0000000002")};
  return lease;
}

LeaseStep StepWith(const Lease& lease, const NodeRequest* request) {
  return NextStep(lease, request, [](const NodeId&) { return nullptr; });
}

TEST(LeaseStepTest, WaitingLeasesFollowTheirRequest) {
  Lease lease = InState(LeaseState::kWaiting);
  NodeRequest request;
  request.state = RequestState::kPending;
  EXPECT_EQ(StepWith(lease, &request), LeaseStep::kNone);
  request.state = RequestState::kRequested;
  EXPECT_EQ(StepWith(lease, &request), LeaseStep::kNone);
  request.state = RequestState::kFulfilled;
  EXPECT_EQ(StepWith(lease, &request), LeaseStep::kTake);
  request.state = RequestState::kFailed;
  EXPECT_EQ(StepWith(lease, &request), LeaseStep::kFail);
  EXPECT_EQ(StepWith(lease, nullptr), LeaseStep::kFail);
  lease.request = RequestId();
  EXPECT_EQ(StepWith(lease, nullptr), LeaseStep::kNoteRequest);
}

TEST(LeaseStepTest, HeldLeasesFollowTheirNodes) {
  Lease lease = InState(LeaseState::kHeld);
  Node node;
  auto step = [&] { return NextStep(lease, nullptr, [&](const NodeId&) { return &node; }); };
  for (NodeState kept : {NodeState::kInUse, NodeState::kReady}) {
    node.state = kept;
    EXPECT_EQ(step(), LeaseStep::kNone) << ToString(kept);
  }
  for (NodeState lost : {NodeState::kHold, NodeState::kUsed, NodeState::kDeleting, NodeState::kDeleted}) {
    node.state = lost;
    EXPECT_EQ(step(), LeaseStep::kDropNodes) << ToString(lost);
  }
  EXPECT_EQ(StepWith(lease, nullptr), LeaseStep::kDropNodes) << "the nodes are gone";
  lease.nodes.clear();
  EXPECT_EQ(StepWith(lease, nullptr), LeaseStep::kNone);
}

TEST(LeaseStepTest, TheOthersEndOrWaitForTheirClient) {
  EXPECT_EQ(StepWith(InState(LeaseState::kEnding), nullptr), LeaseStep::kEnd);
  EXPECT_EQ(StepWith(InState(LeaseState::kFailed), nullptr), LeaseStep::kNone);
  EXPECT_EQ(StepWith(Lease(), nullptr), LeaseStep::kNone);
}

}  // namespace
}  // namespace nodepool::sched
