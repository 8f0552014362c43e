#include "drivers/libvirt/config/host_settings.h"

#include <fmt/format.h>

#include <charconv>

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
