#include "drivers/libvirt/host/libvirt_hypervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <latch>
#include <memory>

#include "async/task_group.h"
#include "base/error.h"
#include "drivers/libvirt/host/connection.h"
#include "drivers/libvirt/host/volume_calls.h"
#include "drivers/libvirt/testing/fake_hypervisor.h"
#include "drivers/libvirt/xml/xml.h"

namespace nodepool::drivers::libvirt {

// libvirt's own test driver, test:///default: a host in the process, without a daemon. It has one domain
// (test), a network (default) and a storage pool (default-pool).

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

constexpr Duration kAmple = std::chrono::seconds(60);
constexpr Duration kShort = std::chrono::milliseconds(1);

// A call that returns when it is let go.
struct Blocked {
  std::shared_ptr<std::latch> gate = std::make_shared<std::latch>(1);
  int operator()() const {
    gate->wait();
    return 7;
  }
};

class CallThreadsTest : public ::testing::Test {
 protected:
  template <class Work>
  Failure FailureOf(Work work, Duration limit = kAmple) {
    auto outcome = RunToEnd(loop, Attempt(threads.Run("a call", limit, work)));
    EXPECT_FALSE(outcome.has_value());
    return outcome.error();
  }

  Loop loop;
  CallThreads threads{loop, 2};
};

TEST_F(CallThreadsTest, ReturnWhatTheWorkReturns) {
  EXPECT_EQ(RunToEnd(loop, threads.Run("a call", kAmple, [] { return std::string("answer"); })), "answer");
  bool has_run = false;
  RunToEnd(loop, threads.Run("a call", kAmple, [&] { has_run = true; }));
  EXPECT_TRUE(has_run);
}

TEST_F(CallThreadsTest, ThrowWhatTheWorkThrows) {
  Failure failure = FailureOf([]() -> int { throw Error(Verdict::kNotFound, "no volume x"); });
  EXPECT_EQ(failure.verdict(), Verdict::kNotFound);
  EXPECT_EQ(failure.message(), "no volume x");
}

// LV-32
TEST_F(CallThreadsTest, ACallThatDoesNotReturnEndsForItsCallerAndStallsTheHost) {
  Blocked blocked;
  EXPECT_EQ(FailureOf(blocked, kShort).verdict(), Verdict::kRetry);
  Failure refused = FailureOf([] { return 1; });
  EXPECT_EQ(refused.verdict(), Verdict::kRetry);
  EXPECT_THAT(refused.message(), ::testing::HasSubstr("a call has not ended"));
  blocked.gate->count_down();
  RunToEnd(loop, threads.Drain(loop.SteadyNow() + kAmple));
  EXPECT_EQ(threads.Overdue(), std::nullopt);
  EXPECT_EQ(RunToEnd(loop, threads.Run("a call", kAmple, [] { return 1; })), 1);
}

// LV-32
TEST_F(CallThreadsTest, DrainingEndsAtItsDeadline) {
  Blocked blocked;
  FailureOf(blocked, kShort);
  RunToEnd(loop, threads.Drain(loop.SteadyNow() + kShort));
  EXPECT_NE(threads.Overdue(), std::nullopt);
  blocked.gate->count_down();
}

// LV-32
TEST(AbandonedCalls, MayReturnWhenNothingIsThereAnyMore) {
  Blocked blocked;
  {
    Loop loop;
    CallThreads threads(loop, 1);
    auto outcome = RunToEnd(loop, Attempt(threads.Run("a call", kShort, blocked)));
    EXPECT_FALSE(outcome);
  }
  blocked.gate->count_down();
}

// Pools and networks that are made, on libvirt's test driver: a host in the process that lives as long as its
// connection.

using ::testing::HasSubstr;

NewNetwork Network(const std::string& name = "made") {
  return {name, boost::asio::ip::make_network_v4("192.168.150.0/24"), false};
}

class PlacesTest : public ::testing::Test {
 protected:
  void SetUp() override { connection = virConnectOpen("test:///default"); }
  void TearDown() override { virConnectClose(connection); }

  std::string ErrorOf(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.verdict(), Verdict::kInvalid);
      return error.message();
    }
    return "no error";
  }

  virConnectPtr connection = nullptr;
};

// LV-46
TEST_F(PlacesTest, APoolIsMadeOnceAndStartedWithItsHost) {
  StoragePool wanted{"made", "/made"};
  PoolHandle pool = OpenPool(connection, wanted);
  EXPECT_EQ(virStoragePoolIsActive(pool.get()), 1);
  int starts_with_host = 0;
  virStoragePoolGetAutostart(pool.get(), &starts_with_host);
  EXPECT_EQ(starts_with_host, 1);
  Allocated<char> xml(virStoragePoolGetXMLDesc(pool.get(), 0));
  EXPECT_THAT(xml.get(), HasSubstr("<path>/made</path>"));
  virStoragePoolDestroy(pool.get());
  EXPECT_EQ(virStoragePoolIsActive(OpenPool(connection, wanted).get()), 1);
}

TEST_F(PlacesTest, APoolWithoutAPathHasToExist) {
  EXPECT_THAT(ErrorOf([&] {
                OpenPool(connection, {"nowhere", std::nullopt});
              }),
              HasSubstr("opening storage pool nowhere"));
}

TEST_F(PlacesTest, ANetworkIsMadeOnceAndStartedWithItsHost) {
  OpenNetwork(connection, "made", Network());
  NetworkHandle network(virNetworkLookupByName(connection, "made"));
  ASSERT_TRUE(network);
  EXPECT_EQ(virNetworkIsActive(network.get()), 1);
  int starts_with_host = 0;
  virNetworkGetAutostart(network.get(), &starts_with_host);
  EXPECT_EQ(starts_with_host, 1);
  virNetworkDestroy(network.get());
  OpenNetwork(connection, "made", Network());
  EXPECT_EQ(virNetworkIsActive(network.get()), 1);
}

TEST_F(PlacesTest, ANetworkThatIsNotOursHasToExistAndRun) {
  EXPECT_THAT(ErrorOf([&] { OpenNetwork(connection, "nowhere", std::nullopt); }),
              HasSubstr("finding network nowhere"));
  NetworkHandle network(virNetworkLookupByName(connection, "default"));
  virNetworkDestroy(network.get());
  EXPECT_THAT(ErrorOf([&] { OpenNetwork(connection, "default", std::nullopt); }),
              HasSubstr("virsh net-start default"));
}

class HashedFileTest : public ::testing::Test {
 protected:
  HashedFileTest() : path_(::testing::TempDir() + "sparse_file_" + std::to_string(getpid())) {}
  ~HashedFileTest() override { std::filesystem::remove(path_); }

  // Reads all of the file; returns how many bytes were data.
  static std::uint64_t ReadAll(HashedFile& file) {
    std::uint64_t data = 0;
    std::array<char, 1000> buffer{};
    for (SparseFile::Stretch section = file.Next(); section.length > 0; section = file.Next()) {
      if (section.is_data) {
        data += static_cast<std::uint64_t>(
            file.Read(buffer.data(), std::min<std::uint64_t>(buffer.size(), section.length)));
      } else {
        file.Skip(section.length);
      }
    }
    return data;
  }

  std::string path_;
};

// LV-18
TEST_F(HashedFileTest, HolesAreSkippedAndHashedAsZeros) {
  std::ofstream(path_) << "abc";
  std::filesystem::resize_file(path_, 1 << 20);
  HashedFile sparse(path_);
  EXPECT_EQ(sparse.size(), 1u << 20);
  EXPECT_LT(ReadAll(sparse), 1u << 16);
  std::ofstream(path_) << "abc" + std::string((1 << 20) - 3, '\0');
  HashedFile full(path_);
  EXPECT_EQ(ReadAll(full), 1u << 20);
  EXPECT_EQ(sparse.Sha256(), full.Sha256());
}

TEST_F(HashedFileTest, TheHashIsThatOfTheFile) {
  std::ofstream(path_) << "abc";
  HashedFile file(path_);
  EXPECT_EQ(ReadAll(file), 3u);
  EXPECT_EQ(file.Sha256(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_F(HashedFileTest, AFileThatIsNotThereIsNamed) {
  try {
    HashedFile file("/nowhere/image");
    FAIL() << "it was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "/nowhere/image: No such file or directory");
  }
}

}  // namespace

}  // namespace nodepool::drivers::libvirt
