#include "drivers/libvirt/machine/choose_host.h"

#include "drivers/libvirt/machine/machine_fixture_for_test.h"

namespace nodepool::drivers::libvirt {
namespace {

using driver::cloud::Instance;
using driver::testing::Recorder;
using ::testing::HasSubstr;

// Two hosts of 8 cores; machines of 2.
class SameHostTest : public MachineTest {
 protected:
  void SetUp() override {
    MachineTest::SetUp();
    AddHost("b");
  }
  Instance CreateFor(const std::string& request, int nodes, std::optional<std::string> az = std::nullopt) {
    auto parameters = Parameters(fmt::format("{:010}", ++last_node_));
    parameters.request_id = RequestId(request);
    parameters.request.node_types.assign(static_cast<std::size_t>(nodes), label->name);
    parameters.az = std::move(az);
    return time.Run(adapter->Create(machines_.emplace_back(), std::move(parameters)), kLong);
  }

 private:
  int last_node_ = 0;
  std::list<Recorder> machines_;
};

// LV-27
TEST_F(SameHostTest, TheNodesOfARequestAreOnOneHostThatHasRoomForAll) {
  Start();
  EXPECT_EQ(CreateFor("100-1", 1).host_id, "a");
  EXPECT_EQ(CreateFor("100-2", 4).host_id, "b") << "a has room for three";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(CreateFor("100-2", 4).az, "b");
  EXPECT_EQ(CreateFor("100-3", 3).host_id, "a");
}

// LV-27
TEST_F(SameHostTest, WithoutRoomOnThatHostTheRequestWaits) {
  Start();
  CreateFor("100-1", 1);
  for (int i = 0; i < 3; ++i) CreateFor("100-2", 3, "b");
  try {
    CreateFor("100-3", 4);
    ADD_FAILURE() << "there is no room for four on one host";
  } catch (const Error& error) {
    EXPECT_EQ(error.verdict(), Verdict::kQuota);
    EXPECT_THAT(error.message(), HasSubstr("a: 6 of 8 cores free, needs 8; b: 2 of 8 cores free, needs 8"));
  }
  try {
    CreateFor("100-4", 5);
    ADD_FAILURE() << "no host is so large";
  } catch (const Error& error) {
    EXPECT_EQ(error.verdict(), Verdict::kInvalid);
  }
}

// LV-27
TEST_F(SameHostTest, PreferTakesAnotherHostWhereOneHasNoRoom) {
  config->same_host = SameHost::kPrefer;
  Start();
  std::map<std::string, int> machines;
  for (int i = 0; i < 6; ++i) ++machines[CreateFor("100-1", 6).host_id.value_or("")];
  EXPECT_EQ(machines["a"], 4);
  EXPECT_EQ(machines["b"], 2);
}

// LV-27
TEST_F(SameHostTest, OnABridgeItDoesNotMatter) {
  label->network = MachineNetwork{MachineNetwork::Kind::kBridge, "br0"};
  prepare = [](testing::FakeHypervisor& host) { host.addresses = {{AddressSource::kAgent, "192.0.2.7"}}; };
  Start();
  Instance first = CreateFor("100-1", 2), second = CreateFor("100-1", 2);
  EXPECT_NE(first.host_id, second.host_id);
  EXPECT_EQ(first.az, std::nullopt);
}

// LV-27
TEST_F(SameHostTest, ANodeThatIsReusedDecides) {
  Start();
  EXPECT_EQ(CreateFor("100-1", 2, "b").host_id, "b");
}

}  // namespace
}  // namespace nodepool::drivers::libvirt
