#pragma once

#include <optional>
#include <string>
#include <vector>

#include "net/ssh/ssh_node.h"

namespace nodepool::net {

// Who logs in, and how.
struct LoginOptions {
  std::optional<std::string> identity;  // path of a private key; none: what ssh finds
  bool may_ask = false;                 // ssh may ask for a password or a passphrase
  bool accepts_any_key = false;         // of nodes whose record has no host keys
};

// What is in `known_hosts` and `config` of ssh for the nodes; `folder` is where both are, and the sockets of
// connections. In them a node is known under its id.
std::string KnownHostsText(const std::vector<SshNode>& nodes);
std::string SshConfigText(const std::vector<SshNode>& nodes, const std::string& folder,
                          const LoginOptions& login);

// A folder of our own with these files, removed at the end, also by std::quick_exit. The user's own
// ~/.ssh/config counts after ours, for keys and jump hosts.
class SshFiles {
 public:
  // Error(kFail): the files cannot be written.
  SshFiles(const std::vector<SshNode>& nodes, const LoginOptions& login);
  ~SshFiles();
  SshFiles(const SshFiles&) = delete;
  SshFiles& operator=(const SshFiles&) = delete;

  const std::string& folder() const { return folder_; }
  std::string config() const { return folder_ + "/config"; }
  // The words that begin a call of `program`, which is ssh or scp.
  std::vector<std::string> Words(const char* program) const { return {program, "-F", config()}; }

 private:
  std::string folder_;
};

}  // namespace nodepool::net
