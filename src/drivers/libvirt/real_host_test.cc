// The driver on a real libvirt, in the process: NODEPOOL_TEST_LIBVIRT_STATE names the state folder of one
// that libvirt-up has started, with its guest image. Without it these tests are skipped.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "config/yaml/yaml_reader.h"
#include "driver/driver.h"
#include "driver/records_environment.h"
#include "driver/testing/contract.h"
#include "drivers/libvirt/host/libvirt_hypervisor.h"
#include "drivers/libvirt/libvirt_driver.h"
#include "drivers/libvirt/testing/fake_hypervisor.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::drivers::libvirt {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Duration kBootLimit = std::chrono::minutes(10);  // without KVM, on a busy computer

constexpr const char* kSection = R"(
name: real
accelerator: tcg
network: nodepool
key: false
boot-timeout: 600
launch-timeout: 900
cloud-images: [{{name: tiny, volume: guest.qcow2, username: zuul}}]
pools:
- name: main
  security-filter: false
  labels: [{{name: small, cloud-image: tiny, memory: 512}}]
uri: qemu+unix:///system?socket={}/run/libvirt-sock
)";

class RealHostTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* state = std::getenv("NODEPOOL_TEST_LIBVIRT_STATE");
    if (state == nullptr) GTEST_SKIP() << "NODEPOOL_TEST_LIBVIRT_STATE names no libvirt";
    global.labels[LabelName("small")].name = LabelName("small");
    std::string text = fmt::format(kSection, state);
    config = LoadLibvirtConfig({ProviderName("real"), "libvirt", *config::ParseYaml(text)}, global);
    pool = config->pools.at(PoolName("main"));
    label = pool->labels.at(LabelName("small"));
    adapter = driver.CreateAdapter({{loop, random, blocking_pool}, framework}, config);
  }
  void TearDown() override {
    if (adapter) RunToEnd(loop, adapter->Stop());
    RunToEnd(loop, client->Close());
  }

  // A launch as the launcher does it, with the node's record.
  Task<store::LockedNode> Launch(driver::Provider& provider) {
    store::StoredRequest request;
    request.id = RequestId("100-0000000001");
    std::unique_ptr<driver::NodeRequestHandler> handler = provider.RequestHandler(pool, request);
    Node fresh;
    fresh.SetState(NodeState::kInit, loop.Now());
    fresh.provider = config->name;
    fresh.pool = pool->name;
    fresh.type = {label->name};
    co_await handler->SetNodeMetadata(fresh);
    auto change = [this](Node& record) {
      record.SetState(NodeState::kBuilding, loop.Now());
      return store::Change::kWrite;
    };
    store::LockedNode node = co_await store.nodes.CreateLocked(std::move(fresh), change);
    co_await handler->Launch(node);
    co_return node;
  }

  Loop loop;
  testing::HostRecorder listener;
  nodepool::testing::MemoryZk zk{loop};
  std::unique_ptr<zk::Client> client = zk.Connect();
  SystemRandom random;
  BlockingPool blocking_pool{2};
  store::Store store{loop, *client, random};
  store::NodeCache nodes{loop, *client};
  store::ImageCache images{loop, *client};
  driver::RecordsEnvironment records{store, nodes, images};
  driver::ProviderEnvironment environment{{loop, random, blocking_pool}, records, [] {}};
  driver::cloud::Framework framework;
  config::Config global;
  std::shared_ptr<const LibvirtConfig> config;
  std::shared_ptr<const driver::LabelConfig> label;
  std::shared_ptr<const driver::PoolConfig> pool;
  Driver driver;
  std::unique_ptr<driver::cloud::Adapter> adapter;
};

// LV-3, LV-5
TEST_F(RealHostTest, ANodeIsReadyWithItsMachinesHostKeysAndIsDeleted) {
  nodes.Start();
  images.Start();
  RunToEnd(loop, nodes.WaitSynced());
  RunToEnd(loop, images.WaitSynced());
  std::unique_ptr<driver::Provider> provider = driver.CreateProvider(environment, config);
  RunToEnd(loop, provider->Start());
  store::LockedNode node = RunToEnd(loop, Launch(*provider));
  const Node record = node.record();
  EXPECT_EQ(record.state, NodeState::kReady);
  EXPECT_THAT(record.host_keys, ::testing::Contains(::testing::StartsWith("ssh-ed25519 ")));
  EXPECT_EQ(record.username, "zuul");
  EXPECT_EQ(record.host_id, "local");
  Resources resources = {{"cores", 1}, {"instances", 1}, {"ram", 512}, {"volume-gb", 1}};
  EXPECT_EQ(record.resources, resources);
  std::string console = RunToEnd(loop, adapter->ConsoleLog(*label, record.external_id)).value_or("");
  EXPECT_THAT(console, HasSubstr("Linux version"));
  EXPECT_THAT(console, HasSubstr("node-seed: cidata"));
  RunToEnd(loop, provider->DeleteResources(node.id(), record));
  EXPECT_THAT(RunToEnd(loop, adapter->ListInstances()), IsEmpty());
  EXPECT_THAT(RunToEnd(loop, adapter->ListResources()), IsEmpty());
  RunToEnd(loop, node.Unlock());
  RunToEnd(loop, provider->Stop());
  RunToEnd(loop, nodes.Stop());
  RunToEnd(loop, images.Stop());
}

// LV-4
TEST_F(RealHostTest, KeepsTheContract) {
  namespace contract = driver::testing;
  contract::Subject subject{loop, *adapter, config->name, pool, label};
  subject.call_timeout = kBootLimit;
  subject.most_cancellations = 3;
  for (const contract::CheckResult& result : RunToEnd(loop, contract::RunContract(std::move(subject)))) {
    EXPECT_NE(result.status, contract::CheckResult::Status::kFailed) << result.check << ": " << result.detail;
  }
  EXPECT_THAT(RunToEnd(loop, adapter->ListResources()), IsEmpty());
}

// A file of 10 GiB with 300 MiB of data, and its upload.
class RealUploadTest : public RealHostTest {
 protected:
  void SetUp() override {
    RealHostTest::SetUp();
    if (IsSkipped()) return;
    std::ofstream file(path, std::ios::binary);
    std::string piece(kMebibyte, 'x');
    for (std::uint64_t i = 0; i < 300; ++i) {
      file.seekp(static_cast<std::streamoff>(i / 100 * 3 * kGibibyte + i % 100 * kMebibyte));
      file << piece;
    }
    file.close();
    std::filesystem::resize_file(path, 10 * kGibibyte);
    upload.filename = path;
    upload.format = "raw";
    upload.metadata = {{"nodepool_build_id", "0000000003"}, {"nodepool_upload_id", "0000000001"}};
    RunToEnd(loop, host().Connect());
  }
  void TearDown() override {
    if (host_) RunToEnd(loop, host_->Stop());
    std::filesystem::remove(path);
    RealHostTest::TearDown();
  }
  LibvirtHypervisor& host() {
    if (!host_) host_ = std::make_unique<LibvirtHypervisor>(loop, config->hosts[0], kBootLimit, listener);
    return *host_;
  }

  static constexpr std::uint64_t kMebibyte = 1 << 20;
  std::string path = ::testing::TempDir() + "libvirt_real_image";
  driver::ImageUploadParameters upload;

 private:
  std::unique_ptr<LibvirtHypervisor> host_;
};

// LV-18
TEST_F(RealUploadTest, AnUploadedImageHasTheSizeOfItsDataAndIsDeleted) {
  std::string id = RunToEnd(loop, adapter->UploadImage(std::move(upload)));
  VolumeInfo volume = RunToEnd(loop, host().Volume(id));
  EXPECT_EQ(volume.capacity, 10 * kGibibyte);
  EXPECT_LT(volume.allocation, 400 * kMebibyte);
  RunToEnd(loop, adapter->DeleteImage(id));
  EXPECT_TRUE(FailedWith(RunToEnd(loop, Attempt(host().Volume(id))), Verdict::kNotFound));
}

// LV-18
TEST_F(RealUploadTest, AFileWithAnotherChecksumThanItsBuildIsRefusedAndLeavesNothing) {
  std::filesystem::resize_file(path, kGibibyte);
  upload.sha256 = std::string(64, '0');
  Outcome<std::string> id = RunToEnd(loop, Attempt(adapter->UploadImage(upload)));
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().verdict(), Verdict::kFail);
  EXPECT_THAT(id.error().message(), HasSubstr("but its build has 0000"));
  for (const VolumeInfo& volume : RunToEnd(loop, host().Volumes())) {
    EXPECT_THAT(volume.name, ::testing::Not(HasSubstr("0000000003"))) << "neither the image nor its mark";
  }
}

// LV-46
TEST_F(RealHostTest, PoolAndNetworkAreMadeOnce) {
  std::string folder = ::testing::TempDir() + "libvirt_real_pool";
  HostConfig wanted = config->hosts[0];
  wanted.storage_pool = {"made-by-test", folder};
  wanted.network.name = "made-by-test";
  wanted.new_network = {"made-by-test", boost::asio::ip::make_network_v4("192.168.199.0/28"), true};
  for (int time = 0; time < 2; ++time) {
    LibvirtHypervisor host(loop, wanted, kBootLimit, listener);
    RunToEnd(loop, host.Connect());
    RunToEnd(loop, host.CreateVolume({.name = fmt::format("volume-{}", time)}));
    EXPECT_EQ(RunToEnd(loop, host.Volumes()).size(), static_cast<std::size_t>(time + 1));
    EXPECT_THAT(RunToEnd(loop, host.Leases("made-by-test")), IsEmpty());
    RunToEnd(loop, host.Stop());
  }
  virConnectPtr connection = virConnectOpen(wanted.uri.c_str());
  {
    NetworkHandle network(virNetworkLookupByName(connection, "made-by-test"));
    EXPECT_EQ(virNetworkDestroy(network.get()), 0);
    EXPECT_EQ(virNetworkUndefine(network.get()), 0);
    PoolHandle pool(virStoragePoolLookupByName(connection, "made-by-test"));
    EXPECT_EQ(virStoragePoolDestroy(pool.get()), 0);
    EXPECT_EQ(virStoragePoolUndefine(pool.get()), 0);
  }
  virConnectClose(connection);
  std::filesystem::remove_all(folder);
}

// LV-23
TEST_F(RealHostTest, AVolumeIsCopiedWithItsHoles) {
  HostConfig second = config->hosts[0];
  second.storage_pool = {"copies", std::string(std::getenv("NODEPOOL_TEST_LIBVIRT_STATE")) + "/copies"};
  LibvirtHypervisor from(loop, config->hosts[0], kBootLimit, listener);
  LibvirtHypervisor to(loop, second, kBootLimit, listener);
  RunToEnd(loop, from.Connect());
  RunToEnd(loop, to.Connect());
  VolumeInfo original = RunToEnd(loop, from.Volume("guest.qcow2"));
  RunToEnd(loop, to.DeleteVolume("guest.qcow2"));
  RunToEnd(loop, to.CreateVolume({.name = "guest.qcow2", .capacity = original.length}));
  RunToEnd(loop, to.CopyVolume(config->hosts[0], "guest.qcow2", kBootLimit));
  RunToEnd(loop, to.Volumes());
  VolumeInfo copy = RunToEnd(loop, to.Volume("guest.qcow2"));
  EXPECT_EQ(copy.length, original.length);
  EXPECT_EQ(copy.format, "qcow2") << "the host sees what it is";
  EXPECT_EQ(copy.capacity, original.capacity);
  EXPECT_LE(copy.allocation, original.allocation + (1u << 20));
  constexpr std::uint64_t kEnd = 1 << 20;
  EXPECT_EQ(RunToEnd(loop, to.ReadVolumeEnd("guest.qcow2", kEnd)),
            RunToEnd(loop, from.ReadVolumeEnd("guest.qcow2", kEnd)));
  RunToEnd(loop, to.DeleteVolume("guest.qcow2"));
  RunToEnd(loop, from.Stop());
  RunToEnd(loop, to.Stop());
}

}  // namespace
}  // namespace nodepool::drivers::libvirt
