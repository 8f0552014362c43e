// Access of ready nodes that does not last.
#include "driver/cloud/launch/access_renewal.h"

#include <gmock/gmock.h>

#include "base/log/logging.h"
#include "driver/cloud/cloud_provider_fixture_for_test.h"

namespace nodepool::driver::cloud {
namespace {

class AccessRenewalTest : public ProviderTest {
 protected:
  NodeId MakeNode(NodeState state, bool is_allocated = false) {
    Node record;
    record.SetState(state, time.loop().Now());
    record.provider = config->name;
    record.pool = PoolName("main");
    record.type = {LabelName("small")};
    record.external_id = "a";
    record.connection_port = boost::json::object{{"token", "old"}};
    if (is_allocated) record.allocated_to = RequestId("100-0000000001");
    NodeId id = time.Run(store.nodes.Create(record));
    time.RunUntil([&] { return nodes.Find(id) != nullptr; });
    return id;
  }
  Node RecordOf(const NodeId& id) { return time.Run(store.nodes.Read(id))->record; }
  std::string TokenOf(const NodeId& id) {
    return boost::json::serialize(RecordOf(id).connection_port.value().as_object().at("token"));
  }
  void Sweep() { time.Run(provider->CleanupLeakedResources()); }

  log::Capture log_;
};

// K8S-89
TEST_F(AccessRenewalTest, OnlyReadyNodesWithoutARequestGetNewAccess) {
  StartProvider();
  cloud->resources = {};
  NodeId free = MakeNode(NodeState::kReady);
  NodeId taken = MakeNode(NodeState::kReady, true);
  NodeId in_use = MakeNode(NodeState::kInUse);
  Sweep();
  EXPECT_EQ(TokenOf(free), "\"old\"") << "it lasts";
  cloud->access_state = AccessState::kRenewalDue;
  Sweep();
  EXPECT_EQ(TokenOf(free), "\"renewed\"");
  EXPECT_EQ(RecordOf(free).driver_data.value(), "a");
  EXPECT_EQ(RecordOf(free).state, NodeState::kReady);
  EXPECT_EQ(TokenOf(taken), "\"old\"");
  EXPECT_EQ(TokenOf(in_use), "\"old\"");
  EXPECT_TRUE(time.Run(store.nodes.TryLock(free))) << "the lock was given up";
}

// K8S-89: the client has it now, whatever its state.
TEST_F(AccessRenewalTest, ALockedNodeIsLeftAlone) {
  StartProvider();
  NodeId id = MakeNode(NodeState::kReady);
  auto lock = time.Run(store.nodes.TryLock(id));
  cloud->access_state = AccessState::kEnds;
  Sweep();
  EXPECT_EQ(TokenOf(id), "\"old\"");
  EXPECT_EQ(RecordOf(id).state, NodeState::kReady);
}

// K8S-90
TEST_F(AccessRenewalTest, WhatCannotBeRenewedIsReportedOnceAndDeletedAtLast) {
  StartProvider();
  NodeId id = MakeNode(NodeState::kReady);
  cloud->access_state = AccessState::kRenewalDue;
  cloud->renewal_fault = Error(Verdict::kRetry, "the server is away");
  Sweep();
  Sweep();
  EXPECT_EQ(RecordOf(id).state, NodeState::kReady);
  EXPECT_EQ(log_.Count("could not be renewed; it is tried again: the server is away"), 1);
  cloud->access_state = AccessState::kEnds;
  Sweep();
  EXPECT_EQ(RecordOf(id).state, NodeState::kDeleting);
}

}  // namespace
}  // namespace nodepool::driver::cloud
