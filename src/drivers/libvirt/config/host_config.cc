#include "drivers/libvirt/config/host_config.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "drivers/libvirt/config/host_uri.h"
#include "drivers/libvirt/config/words.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers::libvirt {

using config::Section;

namespace {

constexpr const char* kDefaultPool = "nodepool";

Accelerator ReadAccelerator(const Section& section, Accelerator otherwise) {
  static const Words<Accelerator> words = {
      {"auto", Accelerator::kAuto}, {"kvm", Accelerator::kKvm}, {"tcg", Accelerator::kTcg}};
  return ReadWord(section, "accelerator", words, otherwise);
}

std::optional<Share> ReadShare(const Section& section, std::string_view key) {
  std::optional<std::string> text = section.OptionalText(key);
  if (!text) return std::nullopt;
  std::optional<Share> share = ParseShare(*text);
  if (!share) throw section.Fail(key, "expected a number or a percentage such as 80%");
  return share;
}

// What a host has that says nothing else. The session of a user without rights has nothing of the system's.
HostConfig UsualHost(const std::string& uri) {
  HostConfig host;
  host.uri = uri;
  host.address = AddressOf(uri);
  if (IsSession(uri)) {
    host.storage_pool = {kDefaultPool, UserDataFolder() + "/nodepool/libvirt"};
    host.network = {MachineNetwork::Kind::kUser, ""};
  } else {
    host.storage_pool = {kDefaultPool, "/var/lib/libvirt/images/nodepool"};
    host.network = {MachineNetwork::Kind::kNamed, "default"};
  }
  return host;
}

// The settings that host and provider have in common.
void ReadPlaces(const Section& section, HostConfig& host) {
  host.storage_pool = ReadStoragePool(section, host.storage_pool);
  host.accelerator = ReadAccelerator(section, host.accelerator);
  std::optional<MachineNetwork> network = ReadNetwork(section);
  if (!network) return;
  host.network = std::move(*network);
  host.new_network = ReadNewNetwork(section);
}

HostConfig ReadHost(const Section& section, const Section& provider) {
  HostConfig host = UsualHost(section.Text("uri"));
  host.name = section.Text("name");
  auto is_allowed = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; };
  if (host.name.empty() || !std::ranges::all_of(host.name, is_allowed)) {
    throw section.Fail("name", "a host's name consists of letters, digits, - and _");
  }
  ReadPlaces(provider, host);
  ReadPlaces(section, host);
  host.address = section.OptionalText("address").value_or(host.address);
  host.cores = ReadShare(section, "cores").value_or(host.cores);
  host.memory = ReadShare(section, "memory");
  host.disk = ReadShare(section, "disk").value_or(host.disk);
  if (section.Has("instances")) host.instances = ReadCount(section, "instances");
  host.min_free_disk = ReadCount(section, "min-free-disk");
  host.is_paused = section.Bool("paused");
  return host;
}

}  // namespace

std::vector<HostConfig> ReadHosts(const Section& provider) {
  HostConfig only = UsualHost(provider.Text("uri"));
  only.name = "local";
  ReadPlaces(provider, only);
  if (!provider.Has("hosts")) return {only};
  if (provider.Has("uri")) throw provider.Fail("uri", "cannot be set beside hosts: each host has its own");
  std::vector<HostConfig> hosts;
  std::set<std::string> names;
  for (const Section& entry : provider.Sections("hosts")) {
    hosts.push_back(ReadHost(entry, provider));
    if (!names.insert(hosts.back().name).second) throw entry.Fail("name", "two hosts have this name");
  }
  if (hosts.empty()) throw provider.Fail("hosts", "expected at least one host");
  return hosts;
}

}  // namespace nodepool::drivers::libvirt
