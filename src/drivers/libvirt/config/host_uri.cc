#include "drivers/libvirt/config/host_uri.h"

#include <cstdlib>

#include "base/error.h"

namespace nodepool::drivers::libvirt {

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
