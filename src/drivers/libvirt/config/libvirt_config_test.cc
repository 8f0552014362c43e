#include "drivers/libvirt/config/libvirt_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/yaml/yaml_reader.h"
#include "driver/cloud/adapter.h"
#include "drivers/libvirt_schema.h"

namespace nodepool::drivers::libvirt {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kSmallest =
    "name: here\ncloud-images: [{name: debian, username: debian}]\n"
    "pools: [{name: main, labels: [{name: l, cloud-image: debian}]}]\n";

class LibvirtConfigTest : public ::testing::Test {
 protected:
  LibvirtConfigTest() {
    config_.labels[LabelName("l")].name = LabelName("l");
    config::DiskImage& image = config_.diskimages[ImageName("d")];
    image.name = ImageName("d");
    image.username = "zuul";
  }

  std::shared_ptr<const LibvirtConfig> Load(const std::string& text) {
    return LoadLibvirtConfig({ProviderName("here"), "libvirt", *config::ParseYaml(text)}, config_);
  }
  std::string ErrorOf(const std::string& text) {
    try {
      Load(text);
    } catch (const Error& error) {
      return error.message();
    }
    return "no error";
  }
  // A provider with one label, which has these settings besides its name.
  static std::string WithLabel(const std::string& settings, const std::string& provider = "",
                               const std::string& pool = "") {
    return "name: here\n" + provider + "\ndiskimages: [{name: d}]\n" +
           "cloud-images: [{name: debian}, {name: file, path: /i.qcow2, format: qcow2}]\n" +
           "pools: [{name: main, " + pool + " labels: [{name: l, " + settings + "}]}]\n";
  }
  const LibvirtLabel& LoadLabel(const std::string& settings, const std::string& provider = "",
                                const std::string& pool = "") {
    loaded_ = Load(WithLabel(settings, provider, pool));
    return driver::cloud::As<LibvirtLabel>(*loaded_->pools.at(PoolName("main"))->labels.at(LabelName("l")));
  }

  config::Config config_;
  std::shared_ptr<const LibvirtConfig> loaded_;
};

// LV-1
TEST_F(LibvirtConfigTest, TheSmallestSection) {
  auto config = Load(kSmallest);
  ASSERT_EQ(config->hosts.size(), 1u);
  EXPECT_EQ(config->hosts[0].name, "local");
  EXPECT_EQ(config->hosts[0].uri, "qemu:///system");
  EXPECT_EQ(config->hosts[0].storage_pool.name, "nodepool");
  EXPECT_EQ(config->hosts[0].storage_pool.path, "/var/lib/libvirt/images/nodepool");
  EXPECT_EQ(config->hosts[0].network.name, "default");
  EXPECT_EQ(config->launch_timeout, std::chrono::seconds(600));
  EXPECT_TRUE(config->manages_images);
  EXPECT_EQ(config->image_format, "qcow2");
  EXPECT_EQ(config->cloud_images.at("debian").external_name, "debian");
  EXPECT_THAT(config::Validate(*config::ParseYaml(kSmallest),
                               LibvirtSchema().With({config::Setting("name", config::Schema::String(), "")})),
              IsEmpty());
}

TEST_F(LibvirtConfigTest, HostsTakeWhatTheyLackFromTheProvider) {
  auto config = Load(
      "name: here\nstorage-pool: fast\naccelerator: tcg\nhosts:\n"
      "- {name: a, uri: 'qemu+ssh://a/system', cores: 150%, memory: 4096, disk: 100, instances: 7}\n"
      "- {name: b, uri: 'qemu+ssh://b/system', storage-pool: slow, network: lan, paused: true, accelerator: "
      "kvm}\n");
  const HostConfig& a = config->hosts[0];
  EXPECT_EQ(a.storage_pool.name, "fast");
  EXPECT_EQ(a.storage_pool.path, std::nullopt);
  EXPECT_EQ(a.accelerator, Accelerator::kTcg);
  EXPECT_EQ(a.cores.Of(8), 12);
  EXPECT_EQ(a.memory->Of(1e6), 4096);
  EXPECT_EQ(a.disk.Of(1e6), 100);
  EXPECT_EQ(a.instances, 7);
  const HostConfig& b = config->hosts[1];
  EXPECT_EQ(b.storage_pool.name, "slow");
  EXPECT_EQ(b.network.name, "lan");
  EXPECT_EQ(b.accelerator, Accelerator::kKvm);
  EXPECT_TRUE(b.is_paused);
  EXPECT_EQ(b.disk.Of(200), 180);
}

TEST_F(LibvirtConfigTest, PoolsAndNetworksThatMayHaveToBeMade) {
  auto config = Load(
      "name: here\nstorage-pool: {name: jobs, path: /srv/jobs}\n"
      "network: {name: jobs, subnet: 192.168.150.7/24, isolated: true}\nhosts:\n"
      "- {name: a, uri: 'qemu+ssh://a/system'}\n"
      "- {name: b, uri: 'qemu+ssh://b/system', storage-pool: fast, network: lan}\n");
  const HostConfig& a = config->hosts[0];
  EXPECT_EQ(a.storage_pool.name, "jobs");
  EXPECT_EQ(a.storage_pool.path, "/srv/jobs");
  EXPECT_EQ(a.network.name, "jobs");
  ASSERT_TRUE(a.new_network);
  EXPECT_EQ(a.new_network->subnet.to_string(), "192.168.150.0/24");
  EXPECT_TRUE(a.new_network->is_isolated);
  const HostConfig& b = config->hosts[1];
  EXPECT_EQ(b.storage_pool.path, std::nullopt);
  EXPECT_EQ(b.network.name, "lan");
  EXPECT_FALSE(b.new_network);
}

TEST_F(LibvirtConfigTest, Labels) {
  const LibvirtLabel& usual = LoadLabel("cloud-image: debian");
  EXPECT_EQ(usual.vcpus, 1);
  EXPECT_EQ(usual.memory, 1024);
  EXPECT_EQ(usual.disk, std::nullopt);
  EXPECT_THAT(usual.seeds, ElementsAre(SeedFormat::kNoCloud, SeedFormat::kConfigDrive));
  EXPECT_EQ(usual.security_filter, "clean-traffic");
  const LibvirtLabel& label =
      LoadLabel("diskimage: d, disk: 20, vcpus: 4, seed: none, userdata: own, network: lan", "",
                "security-filter: false, userdata: the pool's,");
  EXPECT_EQ(label.disk, 20);
  EXPECT_THAT(label.seeds, IsEmpty());
  EXPECT_EQ(label.userdata, "own");
  EXPECT_EQ(label.network, (MachineNetwork{MachineNetwork::Kind::kNamed, "lan"}));
  EXPECT_EQ(label.security_filter, std::nullopt);
  EXPECT_EQ(label.connection.username, "zuul");
}

// LV-9
TEST_F(LibvirtConfigTest, KeysOfProviderPoolAndLabelEachOnce) {
  const LibvirtLabel& label = LoadLabel("cloud-image: debian, authorized-keys: [c, a]",
                                        "authorized-keys: [a]", "authorized-keys: [b, a],");
  EXPECT_THAT(label.authorized_keys, ElementsAre("a", "b", "c"));
}

// LV-1
TEST_F(LibvirtConfigTest, AKeyIsMadeWhereMachinesWouldHaveNone) {
  const std::string smallest = kSmallest;
  EXPECT_EQ(Load(smallest)->key, "/var/lib/nodepool/libvirt/here");
  EXPECT_EQ(Load("name: here\n")->key, std::nullopt) << "no label";
  EXPECT_EQ(Load("authorized-keys: [k]\n" + smallest)->key, std::nullopt);
  EXPECT_EQ(Load("key: true\nauthorized-keys: [k]\n" + smallest)->key, "/var/lib/nodepool/libvirt/here");
  EXPECT_EQ(Load("key: /k\n" + smallest)->key, "/k");
  EXPECT_EQ(Load("key: false\n" + smallest)->key, std::nullopt);
}

TEST_F(LibvirtConfigTest, AnImageMayBeStartedWithAKernelOfTheHost) {
  auto config = Load(
      "name: here\ncloud-images: [{name: i, kernel: /k, initrd: /r, kernel-args: quiet}]\n"
      "pools: [{name: main, labels: [{name: l, cloud-image: i}]}]\n");
  const auto& label =
      driver::cloud::As<LibvirtLabel>(*config->pools.at(PoolName("main"))->labels.at(LabelName("l")));
  ASSERT_TRUE(label.kernel);
  EXPECT_EQ(label.kernel->kernel, "/k");
  EXPECT_EQ(label.kernel->initrd, "/r");
  EXPECT_EQ(label.kernel->arguments, "quiet");
}

// LV-11, LV-12
TEST_F(LibvirtConfigTest, MachinesMayBeOnABridgeOrReachedAtAPort) {
  using Kind = MachineNetwork::Kind;
  auto config = Load(
      "name: here\nnetwork: {bridge: br0}\nhosts:\n- {name: a, uri: "
      "'qemu+ssh://root@a.example:23/system?x=1'}\n"
      "- {name: b, uri: 'qemu:///system', network: {user: true}, address: 192.0.2.1}\n");
  EXPECT_EQ(config->hosts[0].network, (MachineNetwork{Kind::kBridge, "br0"}));
  EXPECT_EQ(config->hosts[0].address, "a.example");
  EXPECT_EQ(config->hosts[1].network, (MachineNetwork{Kind::kUser, ""}));
  EXPECT_EQ(config->hosts[1].address, "192.0.2.1");
  EXPECT_EQ(Load(kSmallest)->hosts[0].address, "127.0.0.1");
  EXPECT_EQ(LoadLabel("cloud-image: debian, network: {user: true}").network,
            (MachineNetwork{Kind::kUser, ""}));
}

// LV-27
TEST_F(LibvirtConfigTest, NodesOfARequestMayHaveToBeOnOneHost) {
  EXPECT_EQ(Load(kSmallest)->same_host, std::nullopt);
  EXPECT_EQ(Load("same-host: prefer\n" + std::string(kSmallest))->same_host, SameHost::kPrefer);
  EXPECT_EQ(Load("same-host: no\n" + std::string(kSmallest))->same_host, SameHost::kNo);
}

// LV-41
TEST_F(LibvirtConfigTest, AConfiguredBootTimeoutIsForAllMachines) {
  EXPECT_EQ(Load(kSmallest)->boot_timeout, std::chrono::seconds(60));
  EXPECT_EQ(Load(kSmallest)->slow_boot_timeout, std::chrono::seconds(300));
  EXPECT_EQ(Load("boot-timeout: 90\n" + std::string(kSmallest))->slow_boot_timeout, std::chrono::seconds(90));
}

// LV-40
TEST_F(LibvirtConfigTest, ASessionHasItsOwnPoolAndNeedsNoNetwork) {
  const HostConfig host = Load("name: here\nuri: qemu:///session\n")->hosts[0];
  EXPECT_THAT(host.storage_pool.path.value_or(""), ::testing::EndsWith("/nodepool/libvirt"));
  EXPECT_TRUE(host.network.is_user());
}

// LV-40
TEST(HostUris, RootHasNoSessionOfItsOwn) {
  for (const char* uri : {"qemu:///session", "qemu:///session?socket=/run/x"}) {
    EXPECT_THROW(CheckRights(uri, true), Error) << uri;
    CheckRights(uri, false);
  }
  CheckRights("qemu:///system", true);
  CheckRights("qemu+ssh://rack1/session", true);
}

// LV-1, LV-22
TEST_F(LibvirtConfigTest, AnImageThatIsFetchedIsNamedByItsChecksum) {
  const std::string hex(64, 'a');
  auto config =
      Load("name: here\ncloud-images: [{name: i, url: 'https://x/i', checksum: 'sha256:" + hex + "'}]\n");
  const LibvirtCloudImage& image = config->cloud_images.at("i");
  ASSERT_TRUE(image.origin);
  EXPECT_EQ(image.origin->checksum, hex);
  EXPECT_EQ(image.origin->algorithm, "sha256");
  EXPECT_EQ(image.format, "qcow2");
  EXPECT_EQ(image.external_name, "np.here.cloud.aaaaaaaaaaaaaaaa.qcow2");
}

TEST_F(LibvirtConfigTest, ALabelMayHaveSeveralNetworks) {
  auto label = [this](const std::string& settings, const std::string& pool = "") {
    auto config = Load(WithLabel("cloud-image: debian" + settings, "", pool));
    return driver::cloud::As<LibvirtLabel>(*config->pools.begin()->second->labels.begin()->second);
  };
  EXPECT_EQ(label(", network: [lan, storage]").network->name, "lan");
  EXPECT_THAT(label(", network: [lan, storage]").more_networks, ElementsAre("storage"));
  EXPECT_THAT(label("", "network: [lan, storage],").more_networks, ElementsAre("storage"));
  EXPECT_THAT(label(", network: other", "network: [lan, storage],").more_networks, IsEmpty());
}

TEST_F(LibvirtConfigTest, RefusesWhatCannotWork) {
  const std::pair<std::string, const char*> cases[] = {
      {"name: here\nuri: a\nhosts: [{name: a, uri: b}]", "cannot be set beside hosts"},
      {"name: here\nhosts: []", "at least one host"},
      {"name: here\nhosts: [{name: a, uri: b}, {name: a, uri: c}]", "two hosts have this name"},
      {"name: here\nhosts: [{name: a/b, uri: b}]", "letters, digits, - and _"},
      {"name: here\nhosts: [{name: a, uri: b, cores: many}]", "a number or a percentage"},
      {"name: here\naccelerator: xen", "expected one of auto, kvm, tcg, found xen"},
      {"name: here\nhost-keys: trust", "expected one of scan, inject, found trust"},
      {"name: here\nhost-keys: inject\ncloud-images: [{name: i}]\npools: [{name: p, labels: [{name: l, "
       "cloud-image: i, seed: none}]}]",
       "the seed carries the host key"},
      {"name: here\ncloud-images: [{name: i, initrd: /r}]", "needs kernel beside it"},
      {"name: here\nstorage-pool: {name: p}", "path"},
      {"name: here\nnetwork: {name: n}", "subnet"},
      {"name: here\nnetwork: {user: false}", "expected true"},
      {"name: here\nnetwork: {name: n, subnet: 192.168.1.0}", "expected an IPv4 subnet"},
      {"name: here\nnetwork: {name: n, subnet: 192.168.1.0/30}", "too few addresses"},
      {"name: here\nnetwork: {user: true}\ncloud-images: [{name: i}]\npools: [{name: p, labels: [{name: l, "
       "cloud-image: i, warm-start: true}]}]",
       "addresses of their own"},
      {"name: here\ncloud-images: [{name: i, url: 'https://x/i'}]", "needs checksum"},
      {"name: here\ncloud-images: [{name: i, url: 'ftp://x/i', checksum: a}]", "https:// or http://"},
      {"name: here\ncloud-images: [{name: i, url: 'https://x/i', checksum: 'md5:00'}]",
       "expected sha256: or sha512:"},
      {"name: here\ncloud-images: [{name: i, url: 'https://x/i', checksum: ''}]",
       "expected sha256: or sha512:"},
      {"name: here\ncloud-images: [{name: i, url: 'https://x/i', volume: v, checksum: a}]",
       "beside volume or path"},
      {"name: here\nimage-format: vhd", "expected one of qcow2, raw"},
      {"name: here\ncloud-images: [{name: i, path: /i}]", "needs format"},
      {"name: here\ncloud-images: [{name: i, path: /i, volume: v, format: raw}]",
       "cannot be set beside volume"},
      {WithLabel("cloud-image: file"), "label l needs disk: its image is a file"},
      {WithLabel("diskimage: d"), "label l needs disk: it boots a diskimage"},
      {WithLabel("cloud-image: debian, vcpus: 0"), "expected a number of at least 1"},
      {WithLabel("cloud-image: debian, network: []"), "expected at least one network"},
      {WithLabel("cloud-image: debian, network: [a, b], warm-start: true"), "machines with one network"},
      {WithLabel("cloud-image: debian, firmware: uefi, warm-start: true"), "machines with firmware: bios"},
      {WithLabel("cloud-image: debian, firmware: efi"), "expected one of bios, uefi, uefi-secure"},
      {WithLabel("cloud-image: debian, seed: floppy"), "expected one of nocloud, config-drive, both, none"},
      {WithLabel("cloud-image: debian, disk-bus: ide"), "expected one of virtio, scsi, sata"},
      {WithLabel("cloud-image: debian, host: x"), "'x' is not one of the hosts of provider here"},
      {WithLabel("cloud-image: debian", "", "hosts: [x],"), "'x' is not one of the hosts of provider here"},
  };
  for (const auto& [text, message] : cases) EXPECT_THAT(ErrorOf(text), HasSubstr(message)) << text;
}

// LV-63
TEST_F(LibvirtConfigTest, MachinesReachThisHostByQemusOwnNetwork) {
  auto reaches = [&](const std::string& provider, const std::string& label = "") {
    return Load(WithLabel("cloud-image: debian" + label, provider))->reaches_this_host;
  };
  EXPECT_FALSE(reaches(""));
  EXPECT_FALSE(reaches("network: {bridge: br0}"));
  EXPECT_TRUE(reaches("uri: qemu:///session"));
  EXPECT_FALSE(reaches("uri: qemu:///session\nnetwork: {bridge: br0}"));
  EXPECT_TRUE(reaches("network: {user: true}"));
  EXPECT_TRUE(reaches("", ", network: {user: true}"));
  EXPECT_FALSE(reaches("network: {user: true}", ", network: default"));
  EXPECT_FALSE(reaches("uri: qemu+ssh://rack1.example.org/system\nnetwork: {user: true}"));
  EXPECT_TRUE(reaches("uri: qemu+ssh://localhost/system\nnetwork: {user: true}"));
}

// LV-1
TEST_F(LibvirtConfigTest, UnknownKeysAreNamedWithTheirNearestSpelling) {
  auto problems = config::Validate(*config::ParseYaml("storage-pol: x"), LibvirtSchema());
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0].ToString(), HasSubstr("storage-pool"));
}

TEST(Shares, AreAmountsOrPercentages) {
  EXPECT_EQ(ParseShare("8")->Of(100), 8);
  EXPECT_EQ(ParseShare("50%")->Of(10), 5);
  for (const char* text : {"", "%", "-1", "1.5", "5 %", "x%", "5%%"}) EXPECT_FALSE(ParseShare(text)) << text;
}

}  // namespace

}  // namespace nodepool::drivers::libvirt
