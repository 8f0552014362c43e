#include "bench/load_site.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "base/testing/free_port.h"

namespace nodepool::bench {
namespace {

constexpr std::string_view kLoopback = "127.0.0.1";

std::string MakeDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "nodepool-load-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a temporary directory");
  return name;
}

// A pool that serves nobody.
constexpr const char* kSilentHost = R"(
  - name: nowhere
    driver: static
    pools:
      - name: main
        nodes: [{name: 127.0.0.1, connection-port: 1, labels: waiting}]
)";

// The labels and their clouds.
std::string Clouds(const LoadSiteOptions& options) {
  std::string limit = options.max_servers < 0 ? "" : fmt::format("max-servers: {}", options.max_servers);
  return fmt::format(R"(
webapp: {{listen_address: 127.0.0.1, port: 0}}
labels:
  - name: small
  - name: waiting
providers:
  - name: fake-load
    driver: fake
    breaker: {}
    cloud: simulated
    cloud-images: [{{name: image, image-name: Fake Precise}}]
    pools:
      - name: main
        {}
        labels: [{{name: small, cloud-image: image, flavor-name: Fake Flavor}}]
    simulation:
      create-latency: 0.0
      delete-latency: 0.0
      limits: {{cores: -1, instances: -1, ram: -1}}{}
)",
                     options.has_breaker, limit, options.has_silent_host ? kSilentHost : "");
}

}  // namespace

LoadSite::LoadSite(const LoadSiteOptions& options) : directory_(MakeDirectory()) {
  if (options.server == Server::kEmbedded) {
    if (options.tls) throw std::runtime_error("TLS is only for Apache ZooKeeper");
    address_ = {std::string(kLoopback), testing::FreePort()};
  } else {
    testing::ZooKeeperServer::Options server;
    server.kind = testing::ZooKeeperServer::Kind::kApache;
    server.tick_time = 2000;
    server.min_session_timeout = 4000;
    server.tls = options.tls;
    server_.emplace(server);
    server_->Start();
    address_ = server_->address();
  }
  std::string file = directory_ + "/nodepool.yaml";
  std::ofstream(file) << Connection(options) << Clouds(options);
  std::vector<std::string> words{options.programs + "/nodepool-launcher", "-f", "-c", file};
  if (options.server == Server::kEmbedded) {
    words = {options.programs + "/nodepool", "standalone", "-c", file};
  }
  daemon_.emplace(std::move(words), directory_ + "/log");
}

LoadSite::~LoadSite() {
  daemon_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::string LoadSite::Connection(const LoadSiteOptions& options) const {
  if (!server_) {
    return fmt::format("embedded-zookeeper: {{state-dir: {}/state, port: {}}}", directory_, address_.port);
  }
  if (!options.tls)
    return fmt::format("zookeeper-servers: [{{host: {}, port: {}}}]", kLoopback, server_->port());
  zk::TlsFiles own = server_->client_files();
  return fmt::format(
      "zookeeper-servers: [{{host: {}, port: {}}}]\nzookeeper-tls: {{cert: {}, key: {}, ca: {}}}", kLoopback,
      server_->tls_port(), own.cert, own.key, own.ca);
}

}  // namespace nodepool::bench
