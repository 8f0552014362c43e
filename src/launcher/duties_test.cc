#include "launcher/cloud_fixture_for_test.h"

namespace nodepool::launcher {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

// What a launcher leaves to other launchers (operations.md 13.1).
class DutiesTest : public LauncherTest {
 protected:
  std::vector<Component> Pools() {
    std::vector<Component> pools;
    for (const std::string& name : Children("/nodepool/components/pool")) {
      auto read = time_.Run(client_->Get("/nodepool/components/pool/" + name));
      if (read) pools.push_back(*ParseComponent(ComponentKind::kPool, read->data));
    }
    return pools;
  }
};

// operations.13.1
TEST_F(DutiesTest, WithoutLaunchesRequestsGetWhatIsReadyAndOthersWait) {
  label_config("small").min_ready = 1;
  duties_.launches = false;
  StartLauncher();
  NodeId free = AddNode(NodeState::kReady);
  RequestId served = Request({"small"});
  EXPECT_TRUE(AwaitState(served, RequestState::kFulfilled));
  EXPECT_EQ(NodesOf(served), std::vector<NodeId>{free});
  RequestId waits = Request({"small"});
  time_.Advance(minutes(3));
  EXPECT_EQ(Read(waits)->state, RequestState::kRequested);
  EXPECT_THAT(Read(waits)->declined_by, ::testing::IsEmpty()) << "another launcher may launch for it";
  EXPECT_EQ(Nodes().size(), 1u) << "min-ready nodes are not launched either";
}

// operations.13.1
TEST_F(DutiesTest, WithoutLaunchesNoOtherLauncherLeavesARequestToIt) {
  duties_.launches = false;
  StartLauncher("idle");
  for (const Component& pool : Pools()) EXPECT_THAT(pool.supported_labels, ::testing::IsEmpty());
  // As its pool, it would be asked first.
  RequestId id = Request({"small"}, [](NodeRequest& request) { request.provider = ProviderName("cloud"); });
  time_.Advance(seconds(10));
  EXPECT_EQ(Read(id)->state, RequestState::kRequested);
  duties_.launches = true;
  StartLauncher("np02");
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
}

// operations.13.1
TEST_F(DutiesTest, WithoutDeletesEverythingStaysUntilAnotherLauncherComes) {
  config_->common.labels.at(LabelName("small")).max_ready_age = minutes(1);
  config_->common.zmq_publishers = {"ipc:///nonexistent/publisher"};
  duties_.deletes = false;
  StartLauncher();
  auto nodes = Use({"small"});
  NodeId used = nodes.at(0).id();
  Return(nodes);
  NodeId old = AddNode(NodeState::kReady);
  NodeId lost = AddNode(NodeState::kInit);
  time_.Advance(minutes(10));
  EXPECT_EQ(Read(used)->state, NodeState::kUsed);
  EXPECT_EQ(Read(old)->state, NodeState::kReady);
  EXPECT_EQ(Read(lost)->state, NodeState::kInit);
  EXPECT_THAT(Children("/nodepool/locks/job-events"), ::testing::IsEmpty()) << "it hears no publisher";
  duties_.deletes = true;
  StartLauncher("np02");
  EXPECT_TRUE(Await([&] { return Nodes().empty(); }));
}

// operations.13.1
TEST_F(DutiesTest, WithoutDeletesNoNodeIsDeletedForCapacity) {
  AddPool("cloud", "main", {"small", "large"}).max_servers = 1;
  duties_.deletes = false;
  StartLauncher();
  NodeId idle = AddNode(NodeState::kReady);
  time_.Advance(seconds(1));
  RequestId id = Request({"large"});
  EXPECT_TRUE(AwaitState(id, RequestState::kPending));
  time_.Advance(minutes(10));
  EXPECT_EQ(Read(idle)->state, NodeState::kReady);
}

}  // namespace
}  // namespace nodepool::launcher
