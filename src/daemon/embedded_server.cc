#include "daemon/embedded_server.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <filesystem>

#include "base/error.h"
#include "daemon/runtime.h"

namespace nodepool::daemon {

zk::server::ServerOptions EmbeddedServerOptions(const config::EmbeddedZooKeeper& embedded) {
  zk::server::ServerOptions options;
  options.port = embedded.port;
  options.journal = embedded.state_dir + "/zookeeper.sqlite";
  if (embedded.tls) {
    options.tls_address = embedded.tls->listen_address;
    options.tls_port = embedded.tls->port;
    const config::ZooKeeperTls& files = embedded.tls->files;
    options.tls = zk::TlsFiles{files.cert, files.key, files.ca};
  }
  return options;
}

zk::server::ServerOptions OwnServerOptions(const config::EmbeddedZooKeeper& embedded, Runtime& runtime) {
  zk::server::ServerOptions options = EmbeddedServerOptions(embedded);
  options.own_password = runtime.own_password;
  options.on_disk_trouble = [&runtime](const std::string& cause) {
    boost::asio::post(runtime.loop.context(), [&runtime, cause] { runtime.state_fault = cause; });
  };
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
