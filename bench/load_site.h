#pragma once

#include <optional>
#include <string>

#include "bench/daemon_process.h"
#include "zk/testing/zookeeper_server.h"

namespace nodepool::bench {

enum class Server {
  kApache,    // nodepool-launcher with Apache ZooKeeper
  kEmbedded,  // nodepool standalone, with the server in its process
};

struct LoadSiteOptions {
  std::string programs;  // their folder
  Server server = Server::kApache;
  bool tls = false;      // between the launcher and Apache ZooKeeper
  int max_servers = -1;  // of the pool; -1: no limit
  bool has_breaker = true;
  // The only one with the label `waiting`; the launcher asks it for its key again and again.
  bool has_silent_host = false;
};

// A launcher with a ZooKeeper server of its own and a cloud that boots at once; all of it is gone with this
// object. Its pool offers the label `small`.
class LoadSite {
 public:
  explicit LoadSite(const LoadSiteOptions& options);
  ~LoadSite();

  zk::HostPort address() const { return address_; }
  DaemonProcess& daemon() { return *daemon_; }

 private:
  std::string Connection(const LoadSiteOptions& options) const;

  std::string directory_;
  std::optional<testing::ZooKeeperServer> server_;
  zk::HostPort address_;
  std::optional<DaemonProcess> daemon_;
};

}  // namespace nodepool::bench
