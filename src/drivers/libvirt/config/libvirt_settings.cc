#include "drivers/libvirt/config/libvirt_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "driver/provider_section.h"
#include "drivers/libvirt_schema.h"

namespace nodepool::config {

using drivers::libvirt::ParseShare;
using drivers::libvirt::Share;

// A number, or a percentage: "150%".
template <>
struct MemberType<Share> {
  static Schema Usual() { return Schema::OneOf({Schema::Int(), Schema::String()}); }
  static Share Read(const Section& section, std::string_view key) {
    std::optional<Share> share = ParseShare(section.Text(key));
    if (!share) throw section.Fail(key, "expected a number or a percentage such as 80%");
    return *share;
  }
  static boost::json::value Written(const Share& share) {
    return boost::json::value(fmt::format("{}{}", share.value, share.is_percentage ? "%" : ""));
  }
};

}  // namespace nodepool::config

namespace nodepool::drivers::libvirt {

namespace {

constexpr int kLongestPrefix = 29;

// --- Storage pools ----------------------------------------------------------------

const Bindings<StoragePool>& StoragePoolSettings() {
  static const Bindings<StoragePool> settings = {
      {Setting("name", "The storage pool.").Required(), &StoragePool::name},
      {Setting("path", "The folder on the host in which it is made.").Required(), &StoragePool::path},
  };
  return settings;
}

void ReadStoragePool(const Section& section, const std::string& key, HostConfig& host) {
  if (!section.IsGiven(key)) return;
  host.storage_pool = StoragePool();
  if (section.IsMapping(key)) {
    StoragePoolSettings().Read(section.Sub(key), host.storage_pool);
  } else {
    host.storage_pool.name = section.Text(key);
  }
}

// --- Networks ---------------------------------------------------------------------

// `network` as a mapping.
struct NetworkMapping {
  std::optional<std::string> name;
  std::optional<std::string> subnet;
  bool is_isolated = false;
  std::optional<std::string> bridge;
  bool is_user = false;
};

Bindings<NetworkMapping> OtherNetworks() {
  return {
      {Setting("bridge",
               "A bridge of the host; another DHCP server gives the addresses, which the guest agent tells."),
       &NetworkMapping::bridge},
      {Setting(
           "user",
           "true: QEMU's own network, which needs no rights; machines are reached at ports 22000 to 22999 of "
           "their host."),
       &NetworkMapping::is_user},
  };
}

const Bindings<NetworkMapping>& NetworkSettings() {
  static const Bindings<NetworkMapping> settings =
      Bindings<NetworkMapping>{
          {Setting("name", "The libvirt network that is made; needs subnet."), &NetworkMapping::name},
          {Setting(
               "subnet",
               "Its IPv4 addresses, e.g. 192.168.150.0/24: the first is the host's, machines get the rest by "
               "DHCP."),
           &NetworkMapping::subnet},
          {Setting("isolated", "Machines cannot reach each other."), &NetworkMapping::is_isolated},
      }
          .With(OtherNetworks())
          .RequireOneOf({"name", "bridge", "user"});
  return settings;
}

Section NetworkSection(const Section& section, std::string_view key) {
  static const Schema schema = NetworkSettings().ToSchema();
  return Section(*section.Raw(key), schema, fmt::format("{}.{}", section.place(), key));
}

boost::asio::ip::network_v4 ParseSubnet(const Section& section, const std::string& text) {
  boost::system::error_code error;
  auto subnet = boost::asio::ip::make_network_v4(text, error);
  if (error) throw section.Fail("subnet", "expected an IPv4 subnet such as 192.168.150.0/24");
  if (subnet.prefix_length() > kLongestPrefix) {
    throw section.Fail("subnet",
                       fmt::format("too few addresses: the prefix has more than {} bits", kLongestPrefix));
  }
  return subnet.canonical();
}

// The network that a mapping says how to make; none where it says nothing of it.
std::optional<NewNetwork> ReadNewNetwork(const Section& section, std::string_view key) {
  if (!section.IsMapping(key)) return std::nullopt;
  Section network = NetworkSection(section, key);
  NetworkMapping mapping;
  NetworkSettings().Read(network, mapping);
  if (!mapping.name) return std::nullopt;
  if (!mapping.subnet) throw network.Fail("name", "needs subnet beside it");
  return NewNetwork{*mapping.name, ParseSubnet(network, *mapping.subnet), mapping.is_isolated};
}

void ReadHostNetwork(const Section& section, const std::string& key, HostConfig& host) {
  std::optional<MachineNetwork> network = ReadNetwork(section, key);
  if (!network) return;
  host.network = std::move(*network);
  host.new_network = ReadNewNetwork(section, key);
}

}  // namespace

Schema LabelNetworkSchema() {
  return Schema::OneOf({Schema::String(), OtherNetworks().RequireOneOf({"bridge", "user"}).ToSchema(),
                        Schema::List(Schema::String())});
}

std::optional<MachineNetwork> ReadNetwork(const Section& section, std::string_view key) {
  using Kind = MachineNetwork::Kind;
  if (!section.Has(key)) return std::nullopt;
  if (!section.IsMapping(key)) {
    std::vector<std::string> names = section.TextList(key);
    if (names.empty()) throw section.Fail(key, "expected at least one network");
    return MachineNetwork{Kind::kNamed, names.front()};
  }
  Section network = NetworkSection(section, key);
  NetworkMapping mapping;
  NetworkSettings().Read(network, mapping);
  if (mapping.bridge) return MachineNetwork{Kind::kBridge, *mapping.bridge};
  if (mapping.name) return MachineNetwork{Kind::kNamed, *mapping.name};
  if (!mapping.is_user) throw network.Fail("user", "expected true");
  return MachineNetwork{Kind::kUser, ""};
}

std::optional<Share> ParseShare(std::string_view text) {
  bool is_percentage = text.ends_with('%');
  if (is_percentage) text.remove_suffix(1);
  unsigned amount = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return Share{static_cast<double>(amount), is_percentage};
}

const Bindings<HostConfig>& HostDefaults() {
  static const Bindings<HostConfig> settings = {
      {Setting(
           "storage-pool", Schema::OneOf({Schema::String(), StoragePoolSettings().ToSchema()}),
           "The storage pool for images and machines: the name of one that exists, or the name and path of "
           "one that is made where there is none. Default: nodepool, made in "
           "/var/lib/libvirt/images/nodepool."),
       ReadStoragePool},
      {Setting(
           "network", Schema::OneOf({Schema::String(), NetworkSettings().ToSchema()}),
           "The network of the machines: the name of a libvirt network, the name and subnet of one that is "
           "made where there is none, a bridge, or QEMU's own. Default: default; of qemu:///session {user: "
           "true}."),
       ReadHostNetwork},
      {Setting("accelerator", "Default: auto, which is kvm where the host offers it.").Inherited(),
       &HostConfig::accelerator,
       Words<Accelerator>{
           {"auto", Accelerator::kAuto}, {"kvm", Accelerator::kKvm}, {"tcg", Accelerator::kTcg}}},
  };
  return settings;
}

const Bindings<HostConfig>& HostSettings() {
  static const Bindings<HostConfig> settings =
      Bindings<HostConfig>{
          {Setting("name", "Part of external ids: renaming a host orphans its nodes.").Required(),
           &HostConfig::name},
          {Setting("uri", "The libvirt connection, e.g. qemu+ssh://user@host/system.").Required().Secret(),
           &HostConfig::uri},
          {Setting(
               "address",
               "Where its forwarded ports are reached; default: the URI's host, 127.0.0.1 for a local one."),
           &HostConfig::address},
          {Setting("cores", "CPUs that machines may have together, or a percentage of the host's."),
           &HostConfig::cores},
          {Setting(
               "memory",
               "Memory that machines may have together, or a percentage of the host's; default: all but the "
               "larger of 1024 MiB and 10%.")
               .Unit("MiB"),
           &HostConfig::memory},
          {Setting("disk", "Sum of the disks' virtual sizes, or a percentage of the storage pool's capacity.")
               .Unit("GiB"),
           &HostConfig::disk},
          {Setting("instances", "Machines at a time; default: unlimited."), &HostConfig::instances},
          {Setting("min-free-disk", "Nothing is created while the storage pool has less.").Unit("GiB"),
           &HostConfig::min_free_disk},
          {Setting("paused", "No new machines here; those that run continue."), &HostConfig::is_paused},
      }
          .With(HostDefaults());
  return settings;
}

}  // namespace nodepool::drivers::libvirt

namespace nodepool::drivers {

const Schema& LibvirtSchema() {
  static const Schema schema = libvirt::LibvirtSettings().ToSchema();
  return schema;
}

}  // namespace nodepool::drivers

namespace nodepool::drivers::libvirt {

namespace cloud = driver::cloud;

namespace {

const Words<std::string>& Formats() {
  static const Words<std::string> words = {{"qcow2", "qcow2"}, {"raw", "raw"}};
  return words;
}

Schema BoolOrText() { return Schema::OneOf({Schema::Bool(), Schema::String()}); }

// --- Machines -------------------------------------------------------------------

// The keys of provider, pool and label, each once.
template <class Owner>
config::Binding<Owner> AuthorizedKeys(const char* help, std::vector<std::string> Owner::*member) {
  return {Setting("authorized-keys", Schema::List(Schema::String()), help),
          [member](const Section& section, const std::string& key, Owner& owner) {
            for (std::string& text : section.TextList(key)) {
              bool is_new = std::ranges::find(owner.*member, text) == (owner.*member).end();
              if (is_new) (owner.*member).push_back(std::move(text));
            }
          }};
}

void ReadMachineNetwork(const Section& section, const std::string& key, LibvirtLabel& label) {
  std::optional<MachineNetwork> network = ReadNetwork(section, key);
  if (!network) return;
  label.network = std::move(network);
  label.more_networks.clear();
  if (section.IsMapping(key)) return;
  std::vector<std::string> names = section.TextList(key);
  label.more_networks.assign(names.begin() + 1, names.end());
}

void ReadFilter(const Section& section, const std::string& key, LibvirtLabel& label) {
  if (!section.IsGiven(key)) return;
  label.security_filter = section.Text(key);
  if (Lower(*label.security_filter) == "true") label.security_filter = kDefaultFilter;
  if (Lower(*label.security_filter) == "false") label.security_filter.reset();
}

// Of labels, and of pools as defaults for them.
Bindings<LibvirtLabel> MachineSettings() {
  return {
      {Setting("network", LabelNetworkSchema(),
               "Another network than the host's: the name of a libvirt network, a bridge, or QEMU's own. Or "
               "names "
               "of several libvirt networks, an interface each; machines are reached in the first."),
       ReadMachineNetwork},
      {Setting("security-filter", BoolOrText(), "libvirt's network filter for the machines; false: none."),
       ReadFilter},
      AuthorizedKeys("More public keys for the machines.", &LibvirtLabel::authorized_keys),
      {Setting("userdata", "User data for cloud-init.").Secret(), &LibvirtLabel::userdata},
  };
}

Schema Size() { return Schema::Int().AtLeast(1); }

}  // namespace

const Bindings<LibvirtCloudImage>& LibvirtCloudImageSettings() {
  using Image = LibvirtCloudImage;
  static const Bindings<Image> settings =
      Bindings<Image>{
          {Setting("name", "What labels call the image.").Required(), &Image::name},
          {Setting("volume", "A volume of the storage pool; default: the image's name."), &Image::volume},
          {Setting("path", "A file on the host; it is never written or deleted."), &Image::path},
          {Setting("url", "Where the image is fetched from, once for each host; needs checksum."),
           &Image::url},
          {Setting("checksum", "sha256: or sha512: and the digits of the image's checksum."),
           &Image::checksum},
          {Setting("format", "Needed with path; default: as the volume says, with url qcow2."),
           &Image::format, Formats()},
          {Setting("kernel", "A kernel of the host to start in place of the boot loader's."), &Image::direct,
           &DirectKernel::kernel},
          {Setting("initrd", "The initrd beside the kernel."), &Image::direct, &DirectKernel::initrd},
          {Setting("kernel-args", "The command line of the kernel."), &Image::direct,
           &DirectKernel::arguments},
      }
          .With(&Image::connection, LoginSettings())
          .Exclusive({"volume", "path", "url"});
  return settings;
}

const Bindings<LibvirtLabel>& LibvirtLabelSettings() {
  using Label = LibvirtLabel;
  static const Bindings<Label> settings =
      Bindings<Label>(cloud::LabelSettings())
          .With({
              {Setting("vcpus", Size(), "Virtual CPUs."), &Label::vcpus},
              {Setting("memory", Size(), "Memory.").Unit("MiB"), &Label::memory},
              {Setting("disk", Size(), "Size of the disk; default: the image's virtual size.").Unit("GiB"),
               &Label::disk},
              {Setting("machine",
                       "QEMU's machine type; pc for old images. Default: q35; on hosts of arm64 virt."),
               &Label::machine},
              {Setting(
                   "cpu",
                   "host-passthrough, host-model, maximum, or a model's name; default: host-passthrough with "
                   "kvm, maximum without."),
               &Label::cpu},
              {Setting("firmware", "Only bios with warm-start. Default: bios; on hosts of arm64 uefi."),
               &Label::firmware,
               Words<Firmware>{{"bios", Firmware::kBios},
                               {"uefi", Firmware::kUefi},
                               {"uefi-secure", Firmware::kUefiSecure}}},
              {Setting("disk-bus", "What the disk is attached to."), &Label::disk_bus,
               Words<std::string>{{"virtio", "virtio"}, {"scsi", "scsi"}, {"sata", "sata"}}},
              {Setting("seed", "How keys and user data reach the machine."), &Label::seeds,
               Words<std::vector<SeedFormat>>{{"nocloud", {SeedFormat::kNoCloud}},
                                              {"config-drive", {SeedFormat::kConfigDrive}},
                                              {"both", {SeedFormat::kNoCloud, SeedFormat::kConfigDrive}},
                                              {"none", {}}}},
              {Setting("warm-start",
                       "Machines go on from the saved memory of one that has booted, each with an identity "
                       "of its "
                       "own."),
               &Label::is_started_warm},
              {Setting("host", "Only this host."), &Label::host},
          })
          .With(MachineSettings())
          .RequireOneOf({"diskimage", "cloud-image"});
  return settings;
}

const Bindings<LibvirtPool>& LibvirtPoolSettings() {
  static const Bindings<LibvirtPool> settings =
      Bindings<LibvirtPool>(cloud::CloudPoolSettings())
          .With({
              {Setting("hosts", "Only these hosts; default: all."), &LibvirtPool::hosts},
              Setting("labels", Schema::List(LibvirtLabelSettings().ToSchema()), "The labels offered here."),
          })
          .With(&LibvirtPool::label_defaults, MachineSettings());
  return settings;
}

const Bindings<LibvirtConfig>& LibvirtSettings() {
  using Config = LibvirtConfig;
  static const Bindings<Config> settings =
      Bindings<Config>{
          {Setting("uri", "The libvirt connection of the only host.").Secret(), &Config::uri},
          Setting("hosts", Schema::List(HostSettings().ToSchema()),
                  "Hosts; default: one named local, at uri."),
          AuthorizedKeys("Public keys for every machine.", &Config::authorized_keys),
          {Setting("key", BoolOrText(),
                   "File with the private SSH key whose public half every machine gets; made where there is "
                   "none. "
                   "Default where there are no authorized-keys: libvirt/<provider> in the state-dir; false: "
                   "none."),
           &Config::key},
          {Setting("host-keys",
                   "scan: the keys that a machine shows first are its keys; inject: each machine is given "
                   "one, and "
                   "has to show it, which needs cloud-init."),
           &Config::has_own_host_keys, Words<bool>{{"scan", false}, {"inject", true}}},
          {Setting("placement",
                   "spread: the host that is used least; pack: the one used most that has room."),
           &Config::placement, Words<Placement>{{"spread", Placement::kSpread}, {"pack", Placement::kPack}}},
          {Setting("same-host", Schema::OneOf({Schema::Among({"require", "prefer", "no"}), Schema::Bool()}),
                   "Whether the nodes of one request are made on one host. Default: no where they are on a "
                   "bridge, "
                   "else require, since machines on other networks reach only those of their host."),
           &Config::same_host,
           Words<SameHost>{{"require", SameHost::kRequire},
                           {"prefer", SameHost::kPrefer},
                           {"no", SameHost::kNo},
                           {"false", SameHost::kNo}}},
          {Setting("call-timeout",
                   "Time for one call of libvirt; one that starts a machine has four times that."),
           &Config::call_timeout},
          {Setting(
               "boot-timeout",
               "Time for the host key scan of a new node; unless it is set, 300 seconds where machines run "
               "without KVM."),
           &Config::boot_timeout},
          cloud::LaunchTimeout(),
          cloud::LaunchRetries(),
          Setting("cloud-images", Schema::List(LibvirtCloudImageSettings().ToSchema()),
                  "Images that exist on the hosts."),
          Setting("diskimages", Schema::List(cloud::DiskImageSettings().ToSchema()),
                  "Images of the builder to upload here."),
          {Setting("image-format", "Format of uploads."), &Config::image_format, Formats()},
          Setting("pools", Schema::List(LibvirtPoolSettings().ToSchema()), "Groups of nodes."),
      }
          .Declare(HostDefaults())
          .With(cloud::UploadSettings())
          .Exclusive({"uri", "hosts"});
  return settings;
}

}  // namespace nodepool::drivers::libvirt
