#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/node.h"

namespace nodepool::net {

// How ssh reaches a node. All texts can stand in ssh's files and on its command line as they are.
struct SshNode {
  std::string id;  // the node's id, under which the files below know it
  std::string label;
  std::string address;
  std::int64_t port = 22;
  std::string user;                    // empty: the record names none
  std::vector<std::string> host_keys;  // "<type> <base64>"
};

// Records are written by other programs, too. The error says what about this one cannot be used for a login:
// another kind of connection (winrm), no address, or text that ssh would take for something else.
Expected<SshNode> SshNodeOf(const NodeId& id, const Node& node);

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
