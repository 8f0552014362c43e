// The adapter on a real libvirt, in the process: NODEPOOL_TEST_LIBVIRT_STATE names the state folder of one
// that libvirt-up has started, with its guest image. Without it these tests are skipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "driver/cloud/metadata.h"
#include "driver/records_environment.h"
#include "driver/testing/contract.h"
#include "driver/testing/recorder.h"
#include "drivers/libvirt/host/libvirt_hypervisor.h"
#include "drivers/libvirt/libvirt_adapter.h"
#include "net/tcp_probe.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::drivers::libvirt {
namespace {

using driver::testing::Recorder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Duration kBootLimit = std::chrono::minutes(10);  // without KVM, on a busy computer

class RealHostTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* state = std::getenv("NODEPOOL_TEST_LIBVIRT_STATE");
    if (state == nullptr) GTEST_SKIP() << "NODEPOOL_TEST_LIBVIRT_STATE names no libvirt";
    auto shape = std::make_shared<LibvirtLabel>();
    shape->name = LabelName("small");
    shape->cloud_image = "tiny";
    shape->memory = 512;
    shape->machine = "q35";
    shape->disk_bus = "virtio";
    shape->seeds = {SeedFormat::kNoCloud, SeedFormat::kConfigDrive};
    label = shape;
    pool = std::make_shared<LibvirtPool>();
    pool->name = PoolName("main");
    pool->labels[label->name] = label;
    config->name = ProviderName("real");
    config->pools[pool->name] = pool;
    config->cloud_images["tiny"] = {{.name = "tiny", .external_name = "guest.qcow2"}};
    HostConfig host;
    host.name = "local";
    host.uri = std::string("qemu+unix:///system?socket=") + state + "/run/libvirt-sock";
    host.storage_pool = "nodepool";
    host.network = "nodepool";
    host.accelerator = Accelerator::kTcg;
    host.min_free_disk = 1;
    config->hosts = {host};
    auto make = [this](const HostConfig& made) -> std::unique_ptr<Hypervisor> {
      return std::make_unique<LibvirtHypervisor>(loop, made, config->call_timeout);
    };
    adapter = std::make_unique<LibvirtAdapter>(
        driver::ProviderEnvironment{loop, random, blocking_pool, records, [] {}}, config, make);
  }
  void TearDown() override {
    if (adapter) RunToEnd(loop, adapter->Stop());
    RunToEnd(loop, client->Close());
  }

  driver::cloud::CreateParameters Parameters() {
    driver::cloud::CreateParameters parameters;
    parameters.hostname = "np0000000042";
    parameters.label = label;
    parameters.pool = pool;
    parameters.metadata = driver::cloud::MetadataOf(NodeId("0000000042"), pool->name, config->name);
    return parameters;
  }

  Loop loop;
  nodepool::testing::MemoryZk zk{loop};
  std::unique_ptr<zk::Client> client = zk.Connect();
  SystemRandom random;
  BlockingPool blocking_pool{1};
  store::Store store{loop, *client, random};
  store::NodeCache nodes{loop, *client};
  store::ImageCache images{loop, *client};
  driver::RecordsEnvironment records{store, nodes, images};
  std::shared_ptr<LibvirtConfig> config = std::make_shared<LibvirtConfig>();
  std::shared_ptr<LibvirtLabel> label;
  std::shared_ptr<LibvirtPool> pool;
  std::unique_ptr<LibvirtAdapter> adapter;
};

// LV-3
TEST_F(RealHostTest, AMachineBootsIsReachedAndGoes) {
  EXPECT_GE(RunToEnd(loop, adapter->QuotaLimits()).Get("cores"), 1);
  EXPECT_EQ(adapter->LabelReady(*label), driver::Readiness::kReady);
  Recorder machine;
  driver::cloud::Instance instance = RunToEnd(loop, adapter->Create(machine, Parameters()));
  ASSERT_TRUE(instance.interface_ip);
  std::vector<std::string> addresses = {*instance.interface_ip};
  auto open = RunToEnd(loop, net::FirstToAccept(loop, addresses, 22, loop.SteadyNow() + kBootLimit));
  EXPECT_EQ(open, instance.interface_ip);
  EXPECT_THAT(*RunToEnd(loop, adapter->ConsoleLog(*label, machine.external_id)), HasSubstr("Linux version"));
  EXPECT_EQ(RunToEnd(loop, adapter->ListInstances()).size(), 1u);
  RunToEnd(loop, adapter->Delete(machine, machine.external_id));
  EXPECT_THAT(RunToEnd(loop, adapter->ListInstances()), IsEmpty());
  EXPECT_THAT(RunToEnd(loop, adapter->ListResources()), IsEmpty());
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

// LV-18
TEST_F(RealHostTest, AnUploadedImageHasTheSizeOfItsDataAndIsDeleted) {
  std::string path = ::testing::TempDir() + "libvirt_real_image";
  std::ofstream(path) << "data";
  std::filesystem::resize_file(path, 1 << 30);
  driver::ImageUploadParameters upload;
  upload.filename = path;
  upload.format = "raw";
  upload.metadata = {{"nodepool_build_id", "0000000003"}, {"nodepool_upload_id", "0000000001"}};
  std::string id = RunToEnd(loop, adapter->UploadImage(std::move(upload)));
  std::filesystem::remove(path);
  LibvirtHypervisor host(loop, config->hosts[0], kBootLimit);
  RunToEnd(loop, host.Connect());
  VolumeInfo volume = RunToEnd(loop, host.Volume(id));
  EXPECT_EQ(volume.capacity, 1u << 30);
  EXPECT_LT(volume.allocation, 1u << 20);
  RunToEnd(loop, adapter->DeleteImage(id));
  EXPECT_TRUE(FailedWith(RunToEnd(loop, Attempt(host.Volume(id))), Verdict::kNotFound));
  RunToEnd(loop, host.Stop());
}

}  // namespace
}  // namespace nodepool::drivers::libvirt
