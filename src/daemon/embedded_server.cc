#include "daemon/embedded_server.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "zk/server/password.h"

namespace nodepool::daemon {

zk::server::ServerOptions EmbeddedServerOptions(const config::EmbeddedZooKeeper& embedded) {
  zk::server::ServerOptions options;
  options.port = embedded.port;
  options.own_password = zk::server::NewPassword();
  options.journal = embedded.state_dir + "/zookeeper.sqlite";
  if (embedded.tls) {
    options.tls_address = embedded.tls->listen_address;
    options.tls_port = embedded.tls->port;
    const config::ZooKeeperTls& files = embedded.tls->files;
    options.tls = zk::TlsFiles{files.cert, files.key, files.ca};
  }
  return options;
}

void MakeStateDirectory(const config::EmbeddedZooKeeper& embedded) {
  std::error_code error;
  std::filesystem::create_directories(embedded.state_dir, error);
  if (!error) return;
  throw Error(Verdict::kInvalid, fmt::format("embedded-zookeeper: cannot make the state-dir {}: {}",
                                             embedded.state_dir, error.message()));
}

}  // namespace nodepool::daemon
