#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/testing/virtual_time.h"
#include "driver/cloud/metadata.h"
#include "driver/records_environment.h"
#include "driver/testing/checks.h"
#include "drivers/libvirt/libvirt_driver.h"
#include "drivers/libvirt/testing/fake_hypervisor.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::drivers::libvirt {

constexpr Duration kLong = std::chrono::hours(1000);

// The adapter on hosts in memory, in virtual time.
class MachineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    label = std::make_shared<LibvirtLabel>();
    label->name = LabelName("small");
    label->cloud_image = "debian";
    label->vcpus = 2;
    label->disk_bus = "virtio";
    label->seeds = {SeedFormat::kNoCloud, SeedFormat::kConfigDrive};
    label->authorized_keys = {"ssh-ed25519 AAAA"};
    pool = std::make_shared<LibvirtPool>();
    pool->name = PoolName("main");
    pool->Offer(label);
    config->name = ProviderName("here");
    config->pools[pool->name] = pool;
    config->cloud_images["debian"] = {{.name = "debian", .external_name = "debian.qcow2"}};
    AddHost("a");
  }
  void TearDown() override {
    if (adapter) time.Run(adapter->Stop(), kLong);
  }

  void AddHost(const std::string& name) {
    HostConfig host;
    host.name = name;
    host.network.name = "default";
    host.address = "127.0.0.1";
    config->hosts.push_back(host);
  }
  // Prepares the hosts before the adapter contacts them.
  void Start(bool reads_quota = true) {
    driver::cloud::AdapterEnvironment environment{{time.loop(), random, blocking_pool}, framework, &observer};
    auto make = [this](const HostConfig& host, HypervisorListener& listener) {
      auto fake = std::make_unique<testing::FakeHypervisor>(time.loop(), listener);
      fake->AddVolume({"debian.qcow2", "/pool/debian.qcow2", "qcow2", 2 * kGibibyte, kGibibyte, ""});
      fakes[host.name] = fake.get();
      fake->peers = &fakes;
      if (prepare) prepare(*fake);
      return fake;
    };
    adapter = std::make_unique<LibvirtAdapter>(environment, config, make);
    adapter->Start();
    if (reads_quota) time.Run(adapter->QuotaLimits());
  }
  driver::cloud::CreateParameters Parameters(const std::string& node) {
    driver::cloud::CreateParameters parameters;
    parameters.hostname = "np" + node;
    parameters.label = label;
    parameters.pool = pool;
    parameters.metadata = driver::cloud::MetadataOf(NodeId(node), pool->name, config->name);
    return parameters;
  }
  driver::cloud::Instance Create(driver::testing::Recorder& machine, const std::string& node = "0000000042") {
    return time.Run(adapter->Create(machine, Parameters(node)), kLong);
  }
  Error CreateFails(const std::string& node = "0000000042") {
    driver::testing::Recorder machine;
    try {
      Create(machine, node);
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "the creation succeeded";
    return Error(Verdict::kFail, "");
  }
  template <class T>
  static Task<> Keep(Task<Outcome<T>> task, Outcome<T>& end) {
    end = co_await std::move(task);
  }
  void Delete(driver::testing::Recorder& machine) {
    time.Run(adapter->Delete(machine, machine.external_id), kLong);
  }
  testing::FakeHypervisor& Fake(const std::string& name = "a") { return *fakes.at(name); }

  struct Observer : driver::ProviderObserver {
    void HostMeasured(const driver::HostUse& use) override { hosts[use.host] = use; }
    void HostAdded(const ProviderName&, const std::string& host) override { ++users[host]; }
    void HostRemoved(const ProviderName&, const std::string& host) override { --users[host]; }
    void HostCallEnded(const driver::HostCall& call) override { calls.push_back(call); }
    std::map<std::string, driver::HostUse> hosts;
    std::map<std::string, int> users;  // of hosts
    std::vector<driver::HostCall> calls;
  } observer;
  struct CountedChanges : driver::cloud::Framework {
    void CapacityChanged() override { ++capacity; }
    void QuotaChanged() override { ++quota; }
    void MachinesTaken() override { ++taken; }
    int capacity = 0;
    int quota = 0;
    int taken = 0;
  } framework;
  nodepool::testing::VirtualTime time;
  SeededRandom random{1};
  BlockingPool blocking_pool{0};
  std::shared_ptr<LibvirtConfig> config = std::make_shared<LibvirtConfig>();
  std::shared_ptr<LibvirtLabel> label;
  std::shared_ptr<LibvirtPool> pool;
  std::map<std::string, testing::FakeHypervisor*> fakes;
  std::function<void(testing::FakeHypervisor&)> prepare;
  std::unique_ptr<LibvirtAdapter> adapter;
};

}  // namespace nodepool::drivers::libvirt
