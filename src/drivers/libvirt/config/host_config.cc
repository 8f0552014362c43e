#include "drivers/libvirt/config/host_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>

#include "base/error.h"
#include "drivers/libvirt/config/host_settings.h"

namespace nodepool::drivers::libvirt {

namespace {

constexpr const char* kDefaultPool = "nodepool";

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

HostConfig ReadHost(const Section& section, const Section& provider) {
  HostConfig host = UsualHost(section.Text("uri"));
  HostDefaults().Read(provider, host);
  HostSettings().Read(section, host);
  auto is_allowed = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; };
  if (host.name.empty() || !std::ranges::all_of(host.name, is_allowed)) {
    throw section.Fail("name", "a host's name consists of letters, digits, - and _");
  }
  return host;
}

}  // namespace

std::vector<HostConfig> ReadHosts(const Section& provider, const std::string& uri) {
  HostConfig only = UsualHost(uri);
  only.name = "local";
  HostDefaults().Read(provider, only);
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

namespace {

// What is between "scheme://" and the path.
std::string_view AuthorityOf(std::string_view uri) {
  std::size_t begin = uri.find("://");
  if (begin == std::string_view::npos) return "";
  std::string_view rest = uri.substr(begin + 3);
  return rest.substr(0, rest.find_first_of("/?"));
}

std::string_view PathOf(std::string_view uri) {
  std::string_view authority = AuthorityOf(uri);
  std::size_t begin = uri.find("://");
  if (begin == std::string_view::npos) return "";
  std::string_view rest = uri.substr(begin + 3 + authority.size());
  return rest.substr(0, rest.find('?'));
}

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string AddressOf(std::string_view uri) {
  std::string_view host = AuthorityOf(uri);
  std::size_t user = host.rfind('@');
  if (user != std::string_view::npos) host.remove_prefix(user + 1);
  if (host.starts_with('[')) return std::string(host.substr(1, host.find(']') - 1));
  host = host.substr(0, host.find(':'));
  return host.empty() ? "127.0.0.1" : std::string(host);
}

bool IsSession(std::string_view uri) { return AuthorityOf(uri).empty() && PathOf(uri) == "/session"; }

void CheckRights(std::string_view uri, bool is_root) {
  if (!is_root || !IsSession(uri)) return;
  throw Error(Verdict::kInvalid,
              "qemu:///session is the libvirt of an ordinary user, and Nodepool runs as root: set uri to "
              "qemu:///system, or run Nodepool as that user");
}

std::string UserDataFolder() {
  std::string folder = Environment("XDG_DATA_HOME");
  return folder.empty() ? Environment("HOME") + "/.local/share" : folder;
}

}  // namespace nodepool::drivers::libvirt
