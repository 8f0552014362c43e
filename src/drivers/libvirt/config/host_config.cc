#include "drivers/libvirt/config/host_config.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "drivers/libvirt/config/words.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers::libvirt {

using config::Section;

namespace {

const StoragePool& DefaultPool() {
  static const StoragePool pool = {"nodepool", "/var/lib/libvirt/images/nodepool"};
  return pool;
}

constexpr const char* kDefaultNetwork = "default";

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

void ReadNetwork(const Section& section, const HostConfig& defaults, HostConfig& host) {
  if (!section.Has("network")) {
    host.network = defaults.network;
    host.new_network = defaults.new_network;
    return;
  }
  host.new_network = ReadNewNetwork(section);
  host.network = host.new_network ? host.new_network->name : section.Text("network");
}

void ReadHostDefaults(const Section& section, const HostConfig& defaults, HostConfig& host) {
  host.storage_pool = ReadStoragePool(section, defaults.storage_pool);
  ReadNetwork(section, defaults, host);
  host.accelerator = ReadAccelerator(section, defaults.accelerator);
}

HostConfig ReadHost(const Section& section, const HostConfig& defaults) {
  HostConfig host;
  host.name = section.Text("name");
  auto is_allowed = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; };
  if (host.name.empty() || !std::ranges::all_of(host.name, is_allowed)) {
    throw section.Fail("name", "a host's name consists of letters, digits, - and _");
  }
  host.uri = section.Text("uri");
  ReadHostDefaults(section, defaults, host);
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
  HostConfig only;
  only.name = "local";
  only.uri = provider.Text("uri");
  ReadHostDefaults(provider, HostConfig{.storage_pool = DefaultPool(), .network = kDefaultNetwork}, only);
  if (!provider.Has("hosts")) return {only};
  if (provider.Has("uri")) throw provider.Fail("uri", "cannot be set beside hosts: each host has its own");
  std::vector<HostConfig> hosts;
  std::set<std::string> names;
  for (const Section& entry : provider.Sections("hosts")) {
    hosts.push_back(ReadHost(entry, only));
    if (!names.insert(hosts.back().name).second) throw entry.Fail("name", "two hosts have this name");
  }
  if (hosts.empty()) throw provider.Fail("hosts", "expected at least one host");
  return hosts;
}

}  // namespace nodepool::drivers::libvirt
