// libvirt's own test driver, test:///default: a host in the process, without a daemon. It has one domain
// (test), a network (default) and a storage pool (default-pool).
#include "drivers/libvirt/host/libvirt_hypervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drivers/libvirt/host/connection.h"
#include "drivers/libvirt/host/fetch.h"
#include "drivers/libvirt/testing/host_recorder.h"
#include "drivers/libvirt/xml/domain_xml.h"

namespace nodepool::drivers::libvirt {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kUuid = "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d";
constexpr Duration kLimit = std::chrono::seconds(60);

HostConfig TestHost() {
  HostConfig host;
  host.name = "test";
  host.uri = "test:///default";
  host.storage_pool.name = "default-pool";
  host.network.name = "default";
  return host;
}

class LibvirtHypervisorTest : public ::testing::Test {
 protected:
  void SetUp() override { RunToEnd(loop, hypervisor.Connect()); }
  void TearDown() override { RunToEnd(loop, hypervisor.Stop()); }

  std::vector<std::string> Uuids() {
    std::vector<std::string> uuids;
    for (const std::string& xml : RunToEnd(loop, hypervisor.Domains()))
      uuids.push_back(ParseDomain(xml).uuid);
    return uuids;
  }
  Failure ConnectFails(HostConfig host) {
    LibvirtHypervisor other(loop, std::move(host), kLimit, listener);
    Outcome<> outcome = RunToEnd(loop, Attempt(other.Connect()));
    EXPECT_FALSE(outcome);
    RunToEnd(loop, other.Stop());
    return outcome.error();
  }

  Loop loop;
  testing::HostRecorder listener;
  LibvirtHypervisor hypervisor{loop, TestHost(), kLimit, listener};
};

TEST_F(LibvirtHypervisorTest, TellsTheHostsSize) {
  HostSize size = RunToEnd(loop, hypervisor.Size());
  EXPECT_GT(size.cores, 0);
  EXPECT_GT(size.memory, 0);
  EXPECT_GT(RunToEnd(loop, hypervisor.Space()).capacity, 0u);
}

// driver-libvirt.md 20
TEST_F(LibvirtHypervisorTest, ItsCallsAreReportedByAWord) {
  listener.calls.clear();
  RunToEnd(loop, hypervisor.Size());
  RunToEnd(loop, Attempt(hypervisor.Volume("nowhere")));
  RunToEnd(loop, Attempt(hypervisor.Leases("nowhere")));
  EXPECT_THAT(listener.calls, ::testing::ElementsAre("size true", "volume true", "leases false"));
}

// LV-13
TEST_F(LibvirtHypervisorTest, TellsHowManyAddressesANetworkGives) {
  EXPECT_EQ(RunToEnd(loop, hypervisor.LeaseRange("default")), 253u);
}

TEST_F(LibvirtHypervisorTest, VolumesComeAndGo) {
  NewVolume volume{"np.here.node.1.0a1b2c3d.root", "raw", 1 << 20};
  std::string path = RunToEnd(loop, hypervisor.CreateVolume(volume));
  EXPECT_THAT(path, HasSubstr(volume.name));
  EXPECT_EQ(RunToEnd(loop, hypervisor.Volume(volume.name)).capacity, 1u << 20);
  EXPECT_EQ(RunToEnd(loop, hypervisor.Volumes()).size(), 1u);
  auto again = RunToEnd(loop, Attempt(hypervisor.CreateVolume(volume)));
  EXPECT_FALSE(again) << "the name is in use";
  RunToEnd(loop, hypervisor.DeleteVolume(volume.name));
  RunToEnd(loop, hypervisor.DeleteVolume(volume.name));
  EXPECT_THAT(RunToEnd(loop, hypervisor.Volumes()), IsEmpty());
  auto gone = RunToEnd(loop, Attempt(hypervisor.Volume(volume.name)));
  EXPECT_TRUE(FailedWith(gone, Verdict::kNotFound));
}

TEST_F(LibvirtHypervisorTest, DomainsComeAndGo) {
  std::string xml = fmt::format(
      "<domain "
      "type='test'><name>np</name><uuid>{}</uuid><memory>1024</memory><os><type>hvm</type></os></domain>",
      kUuid);
  RunToEnd(loop, hypervisor.StartDomain(xml));
  EXPECT_THAT(Uuids(), ::testing::Contains(kUuid));
  EXPECT_FALSE(RunToEnd(loop, Attempt(hypervisor.StartDomain(xml))));
  EXPECT_FALSE(RunToEnd(loop, Attempt(hypervisor.ResumeDomain(kUuid)))) << "it is not paused";
  RunToEnd(loop, hypervisor.DestroyDomain(kUuid));
  EXPECT_TRUE(FailedWith(RunToEnd(loop, Attempt(hypervisor.ResumeDomain(kUuid))), Verdict::kNotFound));
  EXPECT_THAT(Uuids(), ::testing::Not(::testing::Contains(kUuid)));
  RunToEnd(loop, hypervisor.DestroyDomain(kUuid));
}

// LV-64
TEST_F(LibvirtHypervisorTest, AStoragePoolThatIsNotActiveIsStartedByTheNextConnection) {
  virConnectPtr operator_ = virConnectOpen("test:///default");
  virStoragePoolPtr pool = virStoragePoolLookupByName(operator_, "default-pool");
  ASSERT_EQ(virStoragePoolDestroy(pool), 0);
  auto refused = RunToEnd(loop, Attempt(hypervisor.CreateVolume({"v", "raw", 1 << 20})));
  EXPECT_TRUE(FailedWith(refused, Verdict::kRetry)) << "it says nothing of the machine";
  EXPECT_THAT(listener.losses, ::testing::ElementsAre("storage pool default-pool is not active any more"));
  RunToEnd(loop, hypervisor.Connect());
  EXPECT_EQ(virStoragePoolIsActive(pool), 1);
  RunToEnd(loop, hypervisor.CreateVolume({"v", "raw", 1 << 20}));
  RunToEnd(loop, hypervisor.DeleteVolume("v"));
  virStoragePoolFree(pool);
  virConnectClose(operator_);
}

TEST_F(LibvirtHypervisorTest, WhatIsNotThereIsNamed) {
  HostConfig host = TestHost();
  host.storage_pool.name = "nowhere";
  Failure failure = ConnectFails(host);
  EXPECT_EQ(failure.verdict(), Verdict::kInvalid);
  EXPECT_THAT(failure.message(), HasSubstr("opening storage pool nowhere"));
  EXPECT_THAT(failure.message(), HasSubstr("storage-pool"));
  host = TestHost();
  host.network.name = "nowhere";
  EXPECT_THAT(ConnectFails(host).message(), HasSubstr("finding network nowhere"));
  EXPECT_TRUE(FailedWith(RunToEnd(loop, Attempt(hypervisor.Leases("nowhere"))), Verdict::kInvalid));
}

// LV-31
TEST_F(LibvirtHypervisorTest, AHostThatCannotBeReachedIsTriedAgain) {
  HostConfig host = TestHost();
  host.uri = "qemu+unix:///system?socket=/nowhere/libvirt-sock";
  EXPECT_EQ(ConnectFails(host).verdict(), Verdict::kRetry);
}

TEST(LibvirtHypervisors, RefuseCallsBeforeTheyAreConnected) {
  Loop loop;
  testing::HostRecorder listener;
  LibvirtHypervisor hypervisor(loop, TestHost(), kLimit, listener);
  EXPECT_TRUE(FailedWith(RunToEnd(loop, Attempt(hypervisor.Domains())), Verdict::kRetry));
}

// LV-45
// LV-22
TEST(FetchedImages, LeaveWhatAPoolHasToKeepFree) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  PoolSpace space{100 * kGibibyte, 20 * kGibibyte};
  calls::CheckRoom(15 * kGibibyte, space, 5 * kGibibyte);
  calls::CheckRoom(0, space, 20 * kGibibyte);
  struct {
    std::uint64_t length, reserve;
  } cases[] = {
      {15 * kGibibyte + 1, 5 * kGibibyte}, {kMost, 5 * kGibibyte}, {1, 20 * kGibibyte}, {0, 21 * kGibibyte}};
  for (const auto& [length, reserve] : cases) {
    try {
      calls::CheckRoom(length, space, reserve);
      ADD_FAILURE() << length;
    } catch (const Error& error) {
      EXPECT_EQ(error.verdict(), Verdict::kQuota);
      EXPECT_THAT(error.message(), HasSubstr("20.0 GiB"));
    }
  }
}

TEST(Faults, ShowNoSecretsOfAnImagesUrl) {
  EXPECT_EQ(calls::Fetching({"https://user:secret@example.org/a.qcow2?token=secret", "sha256", ""}),
            "fetching https://example.org/a.qcow2");
  EXPECT_EQ(calls::Fetching({"https://user:sec ret@", "sha256", ""}), "fetching an image");
}

TEST(Faults, SayWhatToDo) {
  EXPECT_EQ(FaultOf("x", VIR_ERR_NO_DOMAIN, "m").verdict(), Verdict::kNotFound);
  EXPECT_EQ(FaultOf("x", VIR_ERR_STORAGE_VOL_EXIST, "m").verdict(), Verdict::kConflict);
  EXPECT_EQ(FaultOf("x", VIR_ERR_XML_ERROR, "m").verdict(), Verdict::kInvalid);
  EXPECT_EQ(FaultOf("x", VIR_ERR_RPC, "m").verdict(), Verdict::kRetry);
  EXPECT_EQ(FaultOf("x", VIR_ERR_INTERNAL_ERROR, "m").verdict(), Verdict::kFail);
  // LV-35
  Error full = FaultOf("making volume v", VIR_ERR_SYSTEM_ERROR, "cannot write: No space left on device");
  EXPECT_EQ(full.verdict(), Verdict::kQuota);
  EXPECT_EQ(full.message(), "making volume v: cannot write: No space left on device");
  // LV-41
  std::string died = "process exited while connecting to monitor: error: kvm_buf_set_msrs: Assertion failed";
  EXPECT_THAT(FaultOf("x", VIR_ERR_INTERNAL_ERROR, died).message(), HasSubstr("set accelerator to tcg"));
  // LV-15
  EXPECT_THAT(FaultOf("x", VIR_ERR_RPC, "Host key verification failed.").message(), HasSubstr("ssh-keyscan"));
  EXPECT_THAT(FaultOf("x", VIR_ERR_INTERNAL_ERROR, "Permission denied").message(),
              HasSubstr("right to search"));
}

}  // namespace
}  // namespace nodepool::drivers::libvirt
