#include "config/zookeeper_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <filesystem>

#include "base/text.h"

namespace nodepool::config {
namespace {

constexpr int kPlainPort = 2181;
constexpr int kTlsPort = 2281;

// An entry of `zookeeper-servers`.
struct Server {
  std::string host;
  std::optional<int> port;
  std::string chroot;
};

const Bindings<Server>& ServerSettings() {
  static const Bindings<Server> settings = {
      {Setting("host", "Host name or address of a server of the ensemble."), &Server::host},
      {Setting("port", Schema::Port(), "Its client port; 2281 with TLS, 2181 without."), &Server::port},
      {Setting("chroot", "Path below which all data is kept, the same for every server.").NeedsRestart(),
       &Server::chroot},
  };
  return settings;
}

const Bindings<ZooKeeperTls>& TlsSettings() {
  static const Bindings<ZooKeeperTls> settings = {
      {Setting("cert", "PEM file of the client certificate.").NeedsRestart(), &ZooKeeperTls::cert},
      {Setting("key", "PEM file of its key.").NeedsRestart(), &ZooKeeperTls::key},
      {Setting("ca", "PEM file of the authority that signed the servers' certificates.").NeedsRestart(),
       &ZooKeeperTls::ca},
  };
  return settings;
}

// Without brackets, an IPv6 address in its shortest form.
std::string NormalizeHost(std::string host) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  boost::system::error_code error;
  boost::asio::ip::address address = boost::asio::ip::make_address(host, error);
  return error ? host : address.to_string();
}

// What no server or client of ZooKeeper takes as a path; `text` begins with '/'. Empty: nothing.
std::string ChrootFault(const std::string& text) {
  for (const std::string& component : Split(text.substr(1), '/')) {
    if (component.empty()) return "has an empty component: '//'";
    if (component == "." || component == "..") return fmt::format("has the component '{}'", component);
  }
  auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; };
  return std::ranges::any_of(text, is_control) ? "has a control character" : "";
}

// One chroot for all servers: the same on any or all entries (D-01).
void TakeChroot(const Section& section, std::string text, std::string& chroot) {
  while (text.ends_with('/')) text.pop_back();
  if (text.empty()) return;
  if (!text.starts_with('/')) throw section.Fail("chroot", "must begin with '/'");
  if (std::string fault = ChrootFault(text); !fault.empty()) throw section.Fail("chroot", fault);
  if (!chroot.empty() && chroot != text) {
    throw section.Fail("chroot",
                       fmt::format("'{}' differs from '{}' of another server; all servers of an ensemble "
                                   "share one chroot",
                                   Excerpt(text), Excerpt(chroot)));
  }
  chroot = text;
}

// A server as the Python implementation writes it; that program takes everything after the first
// slash of all of them for the chroot.
std::string PythonName(const Server& server) {
  bool is_bare_ipv6 = server.host.find(':') != std::string::npos && !server.host.starts_with('[');
  std::string host = is_bare_ipv6 ? "[" + server.host + "]" : server.host;
  return fmt::format("{}:{}{}", host, server.port.value_or(kTlsPort), server.chroot);
}

std::string PythonChroot(const std::vector<std::string>& names) {
  std::string text = Join(names, ",");
  std::size_t slash = text.find('/');
  if (slash == std::string::npos) return "";
  std::string path = std::filesystem::path(text.substr(slash)).lexically_normal();
  while (path.ends_with('/')) path.pop_back();
  return path;
}

void ReadServers(const Section& root, const std::string& key, ZooKeeperSettings& zookeeper) {
  if (!zookeeper.servers.empty()) return;
  std::vector<std::string> python_names;
  for (const Section& section : root.Sections(key)) {
    Server server;
    ServerSettings().Read(section, server);
    if (server.host.empty()) throw section.Fail("host", "is required");
    zookeeper.servers.push_back({NormalizeHost(server.host), server.port.value_or(0)});
    TakeChroot(section, server.chroot, zookeeper.chroot);
    python_names.push_back(PythonName(server));
  }
  zookeeper.python_chroot = PythonChroot(python_names);
  if (zookeeper.python_chroot == zookeeper.chroot) zookeeper.python_chroot.clear();
}

void ReadTls(const Section& root, const std::string& key, ZooKeeperSettings& zookeeper) {
  if (zookeeper.tls) return;
  Section tls = root.Sub(key);
  if (!tls.value().map().empty()) TlsSettings().Read(tls, zookeeper.tls.emplace());
}

const Bindings<EmbeddedZooKeeper::Tls>& EmbeddedTlsSettings() {
  using Tls = EmbeddedZooKeeper::Tls;
  static const Bindings<Tls> settings = {
      {Setting("listen-address", "Address on which it listens.").NeedsRestart(), &Tls::listen_address},
      {Setting("port", Schema::Port(), "TCP port.").NeedsRestart(), &Tls::port},
      {Setting("cert", "PEM file of the server's certificate.").NeedsRestart(), &Tls::files,
       &ZooKeeperTls::cert},
      {Setting("key", "PEM file of its key.").NeedsRestart(), &Tls::files, &ZooKeeperTls::key},
      {Setting("ca", "PEM file of the authority that signed the clients' certificates.").NeedsRestart(),
       &Tls::files, &ZooKeeperTls::ca},
  };
  return settings;
}

void ReadEmbeddedTls(const Section& section, const std::string& key, EmbeddedZooKeeper& embedded) {
  Section mapping = section.Sub(key);
  if (mapping.value().map().empty()) return;
  EmbeddedZooKeeper::Tls& tls = embedded.tls.emplace(EmbeddedZooKeeper::Tls());
  EmbeddedTlsSettings().Read(mapping, tls);
  if (tls.files.cert.empty() || tls.files.key.empty() || tls.files.ca.empty())
    throw section.Fail(key, "expected cert, key and ca");
}

const Bindings<EmbeddedZooKeeper>& EmbeddedSettings() {
  static const Bindings<EmbeddedZooKeeper> settings = {
      {Setting("state-dir", "Directory for its database.").NeedsRestart(), &EmbeddedZooKeeper::state_dir},
      {Setting(
           "port", Schema::Port(),
           "TCP port for clients on this machine, without TLS; where jobs can connect to it, they have to "
           "show the secret in the state-dir.")
           .NeedsRestart(),
       &EmbeddedZooKeeper::port},
      {Setting("tls", EmbeddedTlsSettings().ToSchema(),
               "How clients on other machines reach it; not at all without."),
       ReadEmbeddedTls},
  };
  return settings;
}

constexpr const char* kTimeout = "zookeeper-timeout";
constexpr const char* kEmbedded = "embedded-zookeeper";

}  // namespace

const Bindings<ZooKeeperSettings>& ConnectionSettings() {
  static const Bindings<ZooKeeperSettings> settings = {
      {Setting("zookeeper-servers", Schema::List(ServerSettings().ToSchema()),
               "The ensemble that keeps all state."),
       ReadServers},
      {Setting("zookeeper-tls", TlsSettings().ToSchema(),
               "Certificate files for the connection to ZooKeeper."),
       ReadTls},
  };
  return settings;
}

const Bindings<ZooKeeperSettings>& MainConnectionSettings() {
  static const Bindings<ZooKeeperSettings> settings = ConnectionSettings().With({
      {Setting(kTimeout, Schema::Number(), "Timeout of the ZooKeeper session.").NeedsRestart(),
       &ZooKeeperSettings::timeout},
      {Setting("zookeeper-insecure", "Allow a connection without TLS to hosts other than this one.")
           .NeedsRestart(),
       &ZooKeeperSettings::insecure},
  });
  return settings;
}

void ReadZooKeeper(const Section& root, ZooKeeperSettings& result) {
  ZooKeeperSettings zookeeper = result;
  MainConnectionSettings().Read(root, zookeeper);
  const Value* timeout = root.value().Find(kTimeout);
  if ((timeout != nullptr && timeout->is_null()) || zookeeper.timeout <= Duration::zero())
    throw root.Fail(kTimeout, "expected a number of seconds above 0");
  result = std::move(zookeeper);
}

void SetUsualPorts(ZooKeeperSettings& zookeeper) {
  for (ZooKeeperServer& server : zookeeper.servers) {
    if (server.port == 0) server.port = zookeeper.tls ? kTlsPort : kPlainPort;
  }
}

Setting EmbeddedZooKeeperSetting() {
  return Setting(kEmbedded, EmbeddedSettings().ToSchema(),
                 "The server within `nodepool standalone`, used when there are no zookeeper-servers.");
}

void ReadEmbeddedZooKeeper(const Section& root, EmbeddedZooKeeper& result) {
  EmbeddedSettings().Read(root.Sub(kEmbedded), result);
}

}  // namespace nodepool::config
