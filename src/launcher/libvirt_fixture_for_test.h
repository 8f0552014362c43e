#pragma once

#include "driver/cloud/cloud_driver.h"
#include "drivers/libvirt/libvirt_driver.h"
#include "drivers/libvirt/testing/fake_hypervisor.h"
#include "drivers/libvirt_schema.h"
#include "launcher/launcher_fixture_for_test.h"

namespace nodepool::launcher {

// Driver libvirt with connections that its owner makes.
class FakeLibvirtDriver : public driver::Driver {
 public:
  FakeLibvirtDriver(drivers::libvirt::MakeHypervisor connect, driver::cloud::HostKeyScan scan)
      : connect_(std::move(connect)), scan_(std::move(scan)) {}

  std::string_view name() const override { return "libvirt"; }
  const config::Schema& ProviderSchema() const override { return drivers::LibvirtSchema(); }
  std::shared_ptr<const driver::ProviderConfig> LoadProviderConfig(const config::ProviderSection& section,
                                                                   config::Config& config) override {
    return drivers::libvirt::LoadLibvirtConfig(section, config);
  }
  std::unique_ptr<driver::Provider> CreateProvider(
      driver::ProviderEnvironment environment,
      std::shared_ptr<const driver::ProviderConfig> config) override {
    auto make = [&](const driver::cloud::AdapterEnvironment& of_adapter) {
      return std::make_unique<drivers::libvirt::LibvirtAdapter>(of_adapter, config, connect_);
    };
    return driver::cloud::MakeCloudProvider(std::move(environment), config, make, scan_);
  }

 private:
  drivers::libvirt::MakeHypervisor connect_;
  driver::cloud::HostKeyScan scan_;
};

// Launchers of the libvirt driver on hosts in memory, which outlive them. Each host has the image debian, and
// is connected to as its name says.
class LibvirtTest : public LauncherFixture {
 protected:
  using FakeHost = drivers::libvirt::testing::FakeHost;
  using FakeHypervisor = drivers::libvirt::testing::FakeHypervisor;

  void SetUp() override {
    LauncherFixture::SetUp();
    auto connect = [this](const drivers::libvirt::HostConfig& host,
                          drivers::libvirt::HypervisorListener& listener) {
      return Connect(host.name, listener);
    };
    auto scan = [this](std::string, int, bool, SteadyTime) { return Scan(); };
    drivers_.Add(std::make_unique<FakeLibvirtDriver>(connect, scan));
  }

  void Load() {
    std::string hosts;
    for (const std::string& name : host_names_) hosts += "{name: " + name + ", uri: qemu:///system}, ";
    LoadYaml("labels: [{name: small, " + top_label_ +
             "}]\n"
             "diskimages: [{name: built, username: zuul}]\n"
             "providers: [{name: here, driver: libvirt, authorized-keys: [ssh-ed25519 AAAA], hosts: [" +
             hosts +
             "], cloud-images: [{name: debian, volume: debian.qcow2, username: zuul}], "
             "diskimages: [{name: built}], " +
             settings_ + "pools: [{name: main, labels: [{name: small, " + label_ + "}]}]}]\n");
  }
  Running& StartLauncher(std::string hostname = "np01") override {
    Load();
    return LauncherFixture::StartLauncher(std::move(hostname));
  }
  void Reconfigure(Running& running) {
    Load();
    running.launcher->Reconfigure(config_);
    time_.Advance(std::chrono::seconds(1));
  }

  // Adds an uploaded image, newer than those before; returns its volume's name.
  std::string AddUpload() {
    std::string build = fmt::format("{:032x}", ++uploads_);
    std::string volume = "np.here.image." + build + ".0000000001.qcow2";
    for (const std::string& name : host_names_) {
      Host(name).volumes[volume] = {volume, "/pool/" + volume, "qcow2", std::uint64_t{1} << 30, 1, ""};
    }
    Write(build, volume, ImageState::kReady);
    return volume;
  }
  // As the builder notes that it deletes an upload.
  void MarkUpload(const std::string& volume) {
    Write(volume.substr(std::string("np.here.image.").size(), 32), volume, ImageState::kDeleting);
  }

  FakeHost& Host(const std::string& name = "a") {
    std::shared_ptr<FakeHost>& host = hosts_[name];
    if (!host) {
      host = std::make_shared<FakeHost>();
      host->volumes["debian.qcow2"] = {"debian.qcow2",         "/pool/debian.qcow2",   "qcow2",
                                       std::uint64_t{2} << 30, std::uint64_t{1} << 30, ""};
    }
    return *host;
  }
  // The last that was made.
  FakeHypervisor& Connection(const std::string& name = "a") { return *connections_.at(name); }
  static drivers::libvirt::MachineId MachineOf(const Node& node) {
    return *drivers::libvirt::ParseMachineId(node.external_id.as_string());
  }
  std::string OnlyDomain(const std::string& host = "a") { return Host(host).domains.begin()->second; }

  std::vector<std::string> host_names_ = {"a"};
  std::string top_label_ = "min-ready: 0";
  std::string label_ = "cloud-image: debian, memory: 512";
  std::string settings_;                                // of the provider, each followed by a comma
  std::function<void(FakeHypervisor&)> prepare_ = {};   // each new connection
  std::map<std::string, FakeHypervisor*> connections_;  // by host

 private:
  std::unique_ptr<FakeHypervisor> Connect(const std::string& name,
                                          drivers::libvirt::HypervisorListener& listener) {
    Host(name);
    auto connection = std::make_unique<FakeHypervisor>(time_.loop(), listener, hosts_[name]);
    if (prepare_) prepare_(*connection);
    connections_[name] = connection.get();
    return connection;
  }
  Task<std::vector<std::string>> Scan() {
    co_await time_.loop().SleepFor(std::chrono::seconds(1));
    std::vector<std::string> keys = {"ssh-ed25519 AAAA"};
    co_return keys;
  }
  void Write(const std::string& build, const std::string& volume, ImageState state) {
    std::string path = "/nodepool/images/built/builds/" + build;
    ImageBuild made;
    made.state = ImageState::kReady;
    made.state_time = time_.loop().Now();
    ImageUpload upload;
    upload.state = state;
    upload.state_time = made.state_time;
    upload.external_id = volume;
    upload.username = "zuul";
    Put(path, ToJson(made));
    Put(path + "/providers/here/images/0000000001", ToJson(upload));
    time_.Advance(std::chrono::seconds(1));
  }

  std::map<std::string, std::shared_ptr<FakeHost>> hosts_;
  int uploads_ = 0;
};

}  // namespace nodepool::launcher
