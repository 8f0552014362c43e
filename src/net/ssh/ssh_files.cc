#include "net/ssh/ssh_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/text.h"

namespace nodepool::net {

namespace {

constexpr std::string_view kLettersAndDigits =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

bool IsWord(std::string_view text, std::string_view others) {
  auto is_allowed = [&](char letter) {
    return kLettersAndDigits.find(letter) != std::string_view::npos ||
           others.find(letter) != std::string_view::npos;
  };
  return !text.empty() && text.front() != '-' && std::ranges::all_of(text, is_allowed);
}

bool IsHostKey(std::string_view key) {
  std::size_t blank = key.find(' ');
  return blank != std::string_view::npos && IsWord(key.substr(0, blank), "-.@") &&
         IsWord(key.substr(blank + 1), "+/=");
}

std::unexpected<Error> Unusable(const NodeId& id, std::string why) {
  return std::unexpected(
      Error(Verdict::kInvalid, fmt::format("Node {} cannot be logged in to: {}", id, why)));
}

}  // namespace

Expected<SshNode> SshNodeOf(const NodeId& id, const Node& node) {
  const std::string& type = node.connection_type.value_or("ssh");
  if (type != "ssh")
    return Unusable(id, fmt::format("its connection type is {}, and only ssh is supported", Excerpt(type)));
  std::string address = node.interface_ip.value_or("");
  if (!IsWord(address, ".:-_%")) return Unusable(id, fmt::format("its address is \"{}\"", Excerpt(address)));
  std::string user = node.username.value_or("");
  if (!user.empty() && !IsWord(user, "._-$@"))
    return Unusable(id, fmt::format("its user is \"{}\"", Excerpt(user)));
  const boost::json::value port = node.connection_port.value();
  if (!port.is_int64() || port.as_int64() < 1 || port.as_int64() > 65535) {
    return Unusable(id, "its connection port is not a number from 1 to 65535");
  }
  if (!std::ranges::all_of(node.host_keys, IsHostKey))
    return Unusable(id, "its host keys are not \"<type> <base64>\"");
  std::string label = node.type.empty() ? std::string() : node.type.front().value;
  return SshNode{id.value, label, address, port.as_int64(), user, node.host_keys};
}

namespace {

void Write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) throw Error(Verdict::kFail, fmt::format("{} cannot be written: {}", path, std::strerror(errno)));
}

// ssh expands words that begin with %.
std::string Literal(const std::string& text) {
  std::string literal;
  for (char letter : text) literal += letter == '%' ? std::string("%%") : std::string(1, letter);
  return literal;
}

std::string SectionOf(const SshNode& node, bool accepts_any_key) {
  const char* checking = accepts_any_key && node.host_keys.empty() ? "accept-new" : "yes";
  std::string text =
      fmt::format("Host {0}\n  HostName {1}\n  Port {2}\n  HostKeyAlias {0}\n  StrictHostKeyChecking {3}\n",
                  node.id, Literal(node.address), node.port, checking);
  if (!node.user.empty()) text += fmt::format("  User {}\n", node.user);
  return text;
}

void Remove(const std::string& folder) {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

// Those that exist; a second signal ends the process without destructors.
std::set<std::string>& Folders() {
  static auto& folders = *new std::set<std::string>;
  [[maybe_unused]] static const int registered =
      std::at_quick_exit([] { std::ranges::for_each(Folders(), &Remove); });
  return folders;
}

}  // namespace

std::string KnownHostsText(const std::vector<SshNode>& nodes) {
  std::string text;
  for (const SshNode& node : nodes) {
    for (const std::string& key : node.host_keys) text += fmt::format("{} {}\n", node.id, key);
  }
  return text;
}

std::string SshConfigText(const std::vector<SshNode>& nodes, const std::string& folder,
                          const LoginOptions& login) {
  std::string text;
  for (const SshNode& node : nodes) text += SectionOf(node, login.accepts_any_key);
  text += fmt::format(
      "Host *\n"
      "  UserKnownHostsFile {0}/known_hosts\n"
      "  GlobalKnownHostsFile /dev/null\n"
      "  UpdateHostKeys no\n"
      "  CheckHostIP no\n"
      "  VerifyHostKeyDNS no\n"
      "  BatchMode {1}\n"
      "  ConnectTimeout 30\n"
      "  ServerAliveInterval 10\n"
      "  ServerAliveCountMax 3\n"
      "  ControlMaster auto\n"
      "  ControlPath {0}/%n\n"
      "  ControlPersist no\n"
      "  LogLevel ERROR\n",
      folder, login.may_ask ? "no" : "yes");
  if (login.identity)
    text += fmt::format("  IdentityFile \"{}\"\n  IdentitiesOnly yes\n", Literal(*login.identity));
  return text + "  Include ~/.ssh/config\n";
}

// Below /tmp wherever TMPDIR points, since the path of a socket is at most 107 bytes long.
SshFiles::SshFiles(const std::vector<SshNode>& nodes, const LoginOptions& login)
    : folder_("/tmp/nodepool-ssh-XXXXXX") {
  if (::mkdtemp(folder_.data()) == nullptr) {
    throw Error(Verdict::kFail, fmt::format("No folder can be made in /tmp: {}", std::strerror(errno)));
  }
  Folders().insert(folder_);
  Write(folder_ + "/known_hosts", KnownHostsText(nodes));
  Write(config(), SshConfigText(nodes, folder_, login));
}

SshFiles::~SshFiles() {
  Remove(folder_);
  Folders().erase(folder_);
}

}  // namespace nodepool::net
