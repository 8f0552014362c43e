#include "drivers/libvirt/config/host_place.h"

#include <fmt/format.h>

#include "drivers/libvirt_schema.h"

namespace nodepool::drivers::libvirt {

using config::Section;
using config::Value;

namespace {

constexpr int kLongestPrefix = 29;

bool Is(Value::Kind kind, const Section& section, std::string_view key) {
  const Value* value = section.Raw(key);
  return value != nullptr && value->kind() == kind;
}

bool IsMapping(const Section& section, std::string_view key) { return Is(Value::Kind::kMap, section, key); }

Section Mapping(const Section& section, std::string_view key, const config::Schema& schema) {
  return Section(*section.Raw(key), schema, fmt::format("{}.{}", section.place(), key));
}

boost::asio::ip::network_v4 ReadSubnet(const Section& section) {
  boost::system::error_code error;
  auto subnet = boost::asio::ip::make_network_v4(section.Text("subnet"), error);
  if (error) throw section.Fail("subnet", "expected an IPv4 subnet such as 192.168.150.0/24");
  if (subnet.prefix_length() > kLongestPrefix) {
    throw section.Fail("subnet",
                       fmt::format("too few addresses: the prefix has more than {} bits", kLongestPrefix));
  }
  return subnet.canonical();
}

}  // namespace

StoragePool ReadStoragePool(const Section& section, const StoragePool& otherwise) {
  if (!IsMapping(section, "storage-pool")) {
    std::optional<std::string> name = section.OptionalText("storage-pool");
    return name ? StoragePool{*name, std::nullopt} : otherwise;
  }
  Section pool = Mapping(section, "storage-pool", StoragePoolSchema());
  return {pool.Text("name"), pool.Text("path")};
}

std::optional<MachineNetwork> ReadNetwork(const Section& section) {
  using Kind = MachineNetwork::Kind;
  if (!section.Has("network")) return std::nullopt;
  if (Is(Value::Kind::kList, section, "network")) {
    std::vector<std::string> names = section.TextList("network");
    if (names.empty()) throw section.Fail("network", "expected at least one network");
    return MachineNetwork{Kind::kNamed, names.front()};
  }
  if (!IsMapping(section, "network")) return MachineNetwork{Kind::kNamed, section.Text("network")};
  Section network = Mapping(section, "network", NetworkSchema());
  if (network.Has("bridge")) return MachineNetwork{Kind::kBridge, network.Text("bridge")};
  if (network.Has("name")) return MachineNetwork{Kind::kNamed, network.Text("name")};
  if (!network.Bool("user")) throw network.Fail("user", "expected true");
  return MachineNetwork{Kind::kUser, ""};
}

std::vector<std::string> ReadMoreNetworks(const Section& section) {
  if (!Is(Value::Kind::kList, section, "network")) return {};
  std::vector<std::string> names = section.TextList("network");
  if (!names.empty()) names.erase(names.begin());
  return names;
}

std::optional<NewNetwork> ReadNewNetwork(const Section& section) {
  if (!IsMapping(section, "network")) return std::nullopt;
  Section network = Mapping(section, "network", NetworkSchema());
  if (!network.Has("name")) return std::nullopt;
  if (!network.Has("subnet")) throw network.Fail("name", "needs subnet beside it");
  return NewNetwork{network.Text("name"), ReadSubnet(network), network.Bool("isolated")};
}

}  // namespace nodepool::drivers::libvirt
