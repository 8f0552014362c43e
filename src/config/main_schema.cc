#include "config/main_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <filesystem>

#include "base/text.h"
#include "config/config.h"
#include "config/disk_images.h"

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

namespace {

const Bindings<WebAppSettings>& WebApp() {
  using Tls = WebAppSettings::Tls;
  static const Bindings<Tls> tls = {
      {Setting("cert", "PEM file of the certificate and its chain; read again when it changes.")
           .NeedsRestart(),
       &Tls::cert},
      {Setting("key", "PEM file of its key, without a pass phrase; read again when it changes.")
           .NeedsRestart(),
       &Tls::key},
      {Setting("ca",
               "PEM file of the authority that signed it, for commands that ask launchers; without it the "
               "system's "
               "authorities."),
       &Tls::ca},
  };
  static const Bindings<WebAppSettings> settings = {
      {Setting("port", Schema::Int().Between(0, 65535), "TCP port of the web server; 0: any free one.")
           .NeedsRestart(),
       &WebAppSettings::port},
      {Setting("listen_address", "Address on which the web server listens.").NeedsRestart(),
       &WebAppSettings::listen_address},
      {Setting("read-needs-token",
               "Ask other hosts for a token for reading, too (webapp-tokens of the secure file)."),
       &WebAppSettings::read_needs_token},
      {Setting("tls", "Certificate of the web server, which serves HTTPS with it, else plain HTTP."),
       &WebAppSettings::tls, tls},
  };
  return settings;
}

Schema TenantLimits() {
  return Schema::MapWithOthers(
      {
          Setting("tenant-name", Schema::String(), "Tenant that the limits hold for.").Required(),
          Setting("max-cores", Schema::Int(), "Virtual CPUs in use at a time."),
          Setting("max-servers", Schema::Int(), "Nodes in use at a time.").Unit("nodes"),
          Setting("max-ram", Schema::Int(), "Memory in use at a time.").Unit("MiB"),
          Setting("max-volumes", Schema::Int(), "Volumes in use at a time."),
          Setting("max-volume-gb", Schema::Int(), "Volume space in use at a time.").Unit("GB"),
      },
      Schema::Int());
}

Setting Removed(const char* key, const char* instead) {
  return Setting(key, Schema::Any(), "").Removed(instead);
}

}  // namespace

const Bindings<Config>& TopLevelSettings() {
  static const Schema workers = Schema::Int().Between(0, 1000);
  static const Bindings<Config> settings = {
      {Setting("webapp", "The launcher's web server."), &Config::webapp, WebApp()},
      {Setting("elements-dir", "Directories of image elements, as ELEMENTS_PATH expects them."),
       &Config::elements_dir},
      {Setting("images-dir",
               "Directory for built images and the builder's id, builder_id.txt; the builder needs it."),
       &Config::images_dir},
      {Setting("build-log-dir", "Directory for build logs."), &Config::build_log_dir},
      {Setting("build-log-retention",
               "Build logs kept per image beside the newest; 0 counts as 1, negative keeps all."),
       &Config::build_log_retention},
      {Setting("build-workers", workers,
               "Builds at a time in one builder, instead of --build-workers; 0: none begin."),
       &Config::build_workers},
      {Setting("upload-workers", workers,
               "Uploads at a time in one builder, instead of --upload-workers; 0: none begin."),
       &Config::upload_workers},
      {Setting("max-hold-age", "Held nodes are deleted after this time; 0 or less: never."),
       &Config::max_hold_age},
      {Setting("graceful-stop-timeout", Schema::Number().AtLeast(0),
               "How long a launcher that stops in good order may give back requests and finish deletions."),
       &Config::graceful_stop},
      {Setting("zmq-publishers",
               "ZeroMQ endpoints, as tcp://host:8888, that announce jobs; launchers listen to them."),
       &Config::zmq_publishers},
  };
  return settings;
}

const Bindings<Label>& MainLabelSettings() {
  constexpr const char* kMoved =
      "since version 3 a label's image and sources are under providers[].pools[].labels";
  static const Bindings<Label> settings = {
      {Setting("name", "What node requests ask for.").Required(), &Label::name},
      {Setting("min-ready", "Ready nodes to keep in stock; 0 or less keeps none.").Unit("nodes"),
       &Label::min_ready},
      {Setting("max-ready-age", "Ready nodes older than this are deleted; 0 keeps them.").Default(0),
       &Label::max_ready_age},
      Removed("image", kMoved),
      Removed("providers", kMoved),
      Removed("ready-script", "since version 3 nodes are prepared by jobs or image elements"),
      Removed("subnodes", "since version 3 one request may ask for several nodes"),
  };
  return settings;
}

namespace {

Schema MakeMainSchema() {
  Schema schema = TopLevelSettings().ToSchema().With({
      EmbeddedZooKeeperSetting(),
      Setting("labels", Schema::List(MainLabelSettings().ToSchema()),
              "The kinds of nodes that can be asked for."),
      DiskImagesSetting(),
      Setting("providers", Schema::List(Schema::Any()),
              "Where nodes come from; see the page of each driver."),
      Setting("tenant-resource-limits", Schema::List(TenantLimits()),
              "What the nodes of a tenant may use together."),
      RunnersSetting(),
      Removed("cron", "periodic work needs no schedule since version 3; remove it"),
      Removed("gearman-servers", "requests come through ZooKeeper since version 3; remove it"),
      Removed("script-dir", "snapshot images were removed in version 3; use diskimages[].elements"),
      Removed("targets", "nodes are handed out through ZooKeeper since version 3; remove it"),
      Removed("dburi", "all state is in ZooKeeper since version 3; see zookeeper-servers"),
  });
  return schema.With(MainConnectionSettings().ToSchema().settings());
}

Schema MakeSecureSchema() {
  Schema image = Schema::Map({
      Setting("name", Schema::String(), "Image that gets the variables.").Required(),
      Setting("env-vars", Schema::OpenMap(Schema::String()), "Merged over those of the main file.")
          .Required()
          .Secret(),
  });
  Schema schema = Schema::Map({Setting("diskimages", Schema::List(image), "Secret build variables."),
                               WebTokensSetting(), RunnerSecretsSetting()});
  return schema.With(ConnectionSettings().ToSchema().settings());
}

}  // namespace

const Schema& MainSchema() {
  static const Schema schema = MakeMainSchema();
  return schema;
}

const Schema& SecureSchema() {
  static const Schema schema = MakeSecureSchema();
  return schema;
}

}  // namespace nodepool::config
