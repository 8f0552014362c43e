#include "config/config_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "config/disk_images.h"
#include "config/image_name.h"
#include "config/main_schema.h"
#include "config/repeated_names.h"
#include "config/schema/section.h"

namespace nodepool::config {
namespace {

constexpr int kPlainPort = 2181;
constexpr int kTlsPort = 2281;

std::optional<int> WorkerCount(const Section& root, std::string_view key) {
  constexpr std::int64_t kMaxCount = 1000;
  std::optional<std::int64_t> count = root.OptionalInt(key);
  if (!count) return std::nullopt;
  if (*count < 0 || *count > kMaxCount) throw root.Fail(key, "expected a number from 0 to 1000");
  return static_cast<int>(*count);
}

void ReadWebApp(const Section& webapp, WebAppSettings& result) {
  std::int64_t port = webapp.Int("port");
  if (port < 0 || port > 65535) throw webapp.Fail("port", "expected a port from 0 to 65535");
  result.port = static_cast<int>(port);
  result.listen_address = webapp.Text("listen_address");
  result.read_needs_token = webapp.Bool("read-needs-token");
  if (!webapp.Has("tls")) return;
  Section tls = webapp.Sub("tls");
  result.tls = WebAppSettings::Tls{.cert = tls.Text("cert"), .key = tls.Text("key"), .ca = tls.Text("ca")};
  if (result.tls->cert.empty() || result.tls->key.empty()) throw webapp.Fail("tls", "expected cert and key");
}

void ReadTopLevel(const Section& root, Config& config) {
  config.elements_dir = root.OptionalText("elements-dir");
  config.images_dir = root.OptionalText("images-dir");
  if (std::string dir = root.Text("build-log-dir"); !dir.empty()) config.build_log_dir = dir;
  config.build_log_retention = static_cast<int>(
      std::clamp<std::int64_t>(root.Int("build-log-retention"), -1, std::numeric_limits<int>::max()));
  config.build_workers = WorkerCount(root, "build-workers");
  config.upload_workers = WorkerCount(root, "upload-workers");
  double hold_age = root.Float("max-hold-age");
  if (hold_age > 0) config.max_hold_age = SecondsToDuration(hold_age);
  double graceful_stop = root.Float("graceful-stop-timeout");
  if (graceful_stop < 0) throw root.Fail("graceful-stop-timeout", "expected 0 or more seconds");
  config.graceful_stop = SecondsToDuration(graceful_stop);
  ReadWebApp(root.Sub("webapp"), config.webapp);
  config.zmq_publishers = root.TextList("zmq-publishers");
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
void TakeChroot(const Section& server, std::string& chroot) {
  std::string text = server.Text("chroot");
  while (text.ends_with('/')) text.pop_back();
  if (text.empty()) return;
  if (!text.starts_with('/')) throw server.Fail("chroot", "must begin with '/'");
  if (std::string fault = ChrootFault(text); !fault.empty()) throw server.Fail("chroot", fault);
  if (!chroot.empty() && chroot != text) {
    throw server.Fail("chroot",
                      fmt::format("'{}' differs from '{}' of another server; all servers of an ensemble "
                                  "share one chroot",
                                  Excerpt(text), Excerpt(chroot)));
  }
  chroot = text;
}

// A server as the Python implementation writes it; that program takes everything after the first
// slash of all of them for the chroot.
std::string PythonName(const Section& server) {
  std::string host = server.Text("host");
  bool is_bare_ipv6 = host.find(':') != std::string::npos && !host.starts_with('[');
  if (is_bare_ipv6) host = "[" + host + "]";
  return fmt::format("{}:{}{}", host, server.OptionalInt("port").value_or(kTlsPort), server.Text("chroot"));
}

std::string PythonChroot(const std::vector<std::string>& names) {
  std::string text = Join(names, ",");
  std::size_t slash = text.find('/');
  if (slash == std::string::npos) return "";
  std::string path = std::filesystem::path(text.substr(slash)).lexically_normal();
  while (path.ends_with('/')) path.pop_back();
  return path;
}

// Ports that are not given are 0 until it is known whether there is TLS.
void ReadServers(const Section& root, ZooKeeperSettings& zookeeper) {
  std::vector<std::string> python_names;
  for (const Section& section : root.Sections("zookeeper-servers")) {
    std::string host = section.Text("host");
    if (host.empty()) throw section.Fail("host", "is required");
    std::optional<std::int64_t> port = section.OptionalInt("port");
    if (port && (*port < 1 || *port > 65535)) throw section.Fail("port", "expected a port from 1 to 65535");
    zookeeper.servers.push_back({NormalizeHost(std::move(host)), static_cast<int>(port.value_or(0))});
    TakeChroot(section, zookeeper.chroot);
    python_names.push_back(PythonName(section));
  }
  zookeeper.python_chroot = PythonChroot(python_names);
  if (zookeeper.python_chroot == zookeeper.chroot) zookeeper.python_chroot.clear();
}

void ReadTls(const Section& root, ZooKeeperSettings& zookeeper) {
  Section tls = root.Sub("zookeeper-tls");
  if (tls.value().map().empty()) return;
  zookeeper.tls = ZooKeeperTls{.cert = tls.Text("cert"), .key = tls.Text("key"), .ca = tls.Text("ca")};
}

int ReadPort(const Section& section) {
  std::int64_t port = section.Int("port");
  if (port < 1 || port > 65535) throw section.Fail("port", "expected a port from 1 to 65535");
  return static_cast<int>(port);
}

void ReadEmbeddedZooKeeper(const Section& root, EmbeddedZooKeeper& embedded) {
  Section section = root.Sub("embedded-zookeeper");
  embedded.state_dir = section.Text("state-dir");
  embedded.port = ReadPort(section);
  Section tls = section.Sub("tls");
  if (tls.value().map().empty()) return;
  ZooKeeperTls files{.cert = tls.Text("cert"), .key = tls.Text("key"), .ca = tls.Text("ca")};
  if (files.cert.empty() || files.key.empty() || files.ca.empty()) {
    throw section.Fail("tls", "expected cert, key and ca");
  }
  embedded.tls = EmbeddedZooKeeper::Tls{tls.Text("listen-address"), ReadPort(tls), std::move(files)};
}

// Called after the secure file is read, whose servers and TLS files replace those of the main file:
// settings not in force are not checked.
void ReadZooKeeper(const Section& root, ZooKeeperSettings& result) {
  ZooKeeperSettings zookeeper = result;  // all of it, or nothing
  if (zookeeper.servers.empty()) ReadServers(root, zookeeper);
  if (!zookeeper.tls) ReadTls(root, zookeeper);
  const Value* timeout = root.value().Find("zookeeper-timeout");
  double seconds = root.Float("zookeeper-timeout");
  if ((timeout != nullptr && timeout->is_null()) || seconds <= 0) {
    throw root.Fail("zookeeper-timeout", "expected a number of seconds above 0");
  }
  zookeeper.timeout = SecondsToDuration(seconds);
  zookeeper.insecure = root.Bool("zookeeper-insecure");
  result = std::move(zookeeper);
}

void ReadLabels(const Section& root, Config& config) {
  for (const Section& section : root.Sections("labels")) {
    Label label;
    label.name = LabelName(section.Text("name"));
    std::int64_t min_ready = section.Int("min-ready");
    label.min_ready =
        static_cast<int>(std::clamp<std::int64_t>(min_ready, -1, std::numeric_limits<int>::max()));
    if (Duration age = section.Seconds("max-ready-age"); age > Duration::zero()) label.max_ready_age = age;
    config.labels[label.name] = std::move(label);
  }
}

std::string ResourceOf(const std::string& key) {
  if (key == "max-cores") return resource::kCores;
  if (key == "max-servers") return resource::kInstances;
  if (key == "max-ram") return resource::kRam;
  if (key == "max-volumes") return resource::kVolumes;
  if (key == "max-volume-gb") return resource::kVolumeGb;
  return key;
}

void ReadTenantLimits(const Section& root, Config& config) {
  for (const Section& section : root.Sections("tenant-resource-limits")) {
    Resources limits;
    for (const auto& [key, value] : section.value().map()) {
      if (key == "tenant-name" || value.is_null()) continue;
      std::optional<double> limit = LenientFloat(value);
      if (!limit) throw section.Fail(key, fmt::format("expected a number, found {}", value.KindName()));
      limits[ResourceOf(key)] = *limit;
    }
    config.tenant_limits[section.Text("tenant-name")] = std::move(limits);
  }
}

std::string At(const Value& value) {
  return fmt::format("line {}, column {}", value.position().line, value.position().column);
}

// What the section says of its driver although its name decides.
std::string IgnoredDriver(const Value& section, const LoadOptions& options) {
  const Value* driver = section.Find("driver");
  if (driver == nullptr || !driver->is_scalar()) return "";
  bool is_known = options.drivers && options.drivers(driver->text()) != nullptr;
  return fmt::format(
      "; its setting driver: {} has no effect{}", Excerpt(driver->text()),
      is_known ? "" : " and names no driver" + DriverHint(driver->text(), options.driver_names));
}

void WarnAboutSection(const ProviderSection& provider, const Schema& schema, const LoadOptions& options,
                      Config& config) {
  const Value& source = provider.source;
  const Value* driver = source.Find("driver");
  if (provider.driver == "fake" && (driver == nullptr || driver->is_null() || driver->text() != "fake")) {
    config.warnings.push_back(
        fmt::format("{}: provider {} uses the fake driver because its name begins with 'fake'{}", At(source),
                    provider.name, IgnoredDriver(source, options)));
  }
  if (!IsFullyKnown(schema)) {
    config.warnings.push_back(
        fmt::format("{}: provider {}: not all settings of driver {} are known here, so that not "
                    "all of it is checked",
                    At(source), provider.name, provider.driver));
  }
  std::string place = fmt::format("provider {}", provider.name);
  std::ranges::move(UnknownKeys(source, WithCommonSettings(schema), place),
                    std::back_inserter(config.warnings));
}

void ReadProviders(const Section& root, const LoadOptions& options, Config& config) {
  static const Schema common = WithCommonSettings(Schema::Map({}));
  const Value* list = root.Raw("providers");
  if (list == nullptr) return;
  if (list->kind() != Value::Kind::kList) {
    throw root.Fail("providers", fmt::format("expected a list, found {}", list->KindName()));
  }
  std::size_t index = 0;
  for (const Value& entry : list->list()) {
    Section section(entry, common, fmt::format("providers[{}]", index++));
    ProviderSection provider{.name = ProviderName(section.Text("name")), .source = entry};
    section.Text("driver");  // refuses a value that is not text
    provider.driver = DriverOf(provider.name.value, entry);
    const Schema* schema = options.drivers ? options.drivers(provider.driver) : nullptr;
    if (schema == nullptr) {
      throw section.Fail("driver", fmt::format("{}: unknown driver{}", Excerpt(provider.driver),
                                               DriverHint(provider.driver, options.driver_names)));
    }
    WarnAboutSection(provider, *schema, options, config);
    auto same = std::ranges::find(config.providers, provider.name, &ProviderSection::name);
    if (same != config.providers.end()) {
      *same = std::move(provider);
    } else {
      config.providers.push_back(std::move(provider));
    }
  }
}

void WarnAboutImageNames(const Section& root, Config& config) {
  for (const Section& entry : root.Sections("diskimages")) {
    ImageName name(entry.Text("name"));
    std::optional<std::string_view> fault = ImageNameFault(name);
    if (entry.Bool("abstract") || !fault) continue;
    config.warnings.push_back(fmt::format("{}: no builder builds the diskimage '{}': its name {}",
                                          At(entry.value()), Excerpt(name.value), *fault));
  }
}

void ReadSecureImages(const Section& root, Config& config) {
  for (const Section& section : root.Sections("diskimages")) {
    ImageName name(section.Text("name"));
    auto image = config.diskimages.find(name);
    if (image == config.diskimages.end())
      throw section.Fail("name", fmt::format("unknown diskimage {}", name));
    if (!section.Has("env-vars")) throw section.Fail("env-vars", "is required");
    for (auto& [key, value] : section.TextMap("env-vars")) image->second.env_vars[key] = std::move(value);
  }
}

// Reads a file section by section; what is wrong with one does not hide the next.
class SectionReader {
 public:
  SectionReader(std::string path, std::vector<Error>& faults) : path_(std::move(path)), faults_(faults) {}

  // Whether there is nothing wrong.
  template <class Read>
  bool operator()(Read read) {
    try {
      read();
      return true;
    } catch (const Error& error) {
      faults_.push_back(error.In(path_));
      return false;
    }
  }

 private:
  std::string path_;
  std::vector<Error>& faults_;
};

void ReadMainFile(const Value& value, const LoadOptions& options, SectionReader in_main, LoadResult& result) {
  Config& config = result.config;
  if (value.is_null()) throw Error(Verdict::kInvalid, "the file is empty; expected a mapping");
  Section root(value, MainSchema(), "");
  config.warnings = UnknownKeys(value, MainSchema(), "");
  in_main([&] { ReadTopLevel(root, config); });
  bool knows_servers = in_main([&] { ReadZooKeeper(root, config.zookeeper); });
  bool knows_embedded = in_main([&] { ReadEmbeddedZooKeeper(root, config.zookeeper.embedded); });
  result.knows_zookeeper &= knows_servers && knows_embedded;
  in_main([&] { config.diskimages = ReadDiskImages(root); });
  in_main([&] { WarnAboutImageNames(root, config); });
  in_main([&] { ReadLabels(root, config); });
  in_main([&] { ReadProviders(root, options, config); });
  in_main([&] { ReadTenantLimits(root, config); });
}

void ReadBoth(const Value& main, const Value& secure, const LoadOptions& options, LoadResult& result) {
  Config& config = result.config;
  SectionReader in_main(config.path, result.faults);
  SectionReader in_secure(options.secure_path.value_or(""), result.faults);
  result.knows_zookeeper = in_secure([&] {
    Section root(secure, SecureSchema(), "");
    ReadServers(root, config.zookeeper);
    ReadTls(root, config.zookeeper);
    config.web_tokens = ReadWebTokens(root);
  });
  result.knows_zookeeper &= in_main([&] { ReadMainFile(main, options, in_main, result); });
  // Images that could not be read would seem unknown.
  if (result.faults.empty())
    in_secure([&] { ReadSecureImages(Section(secure, SecureSchema(), ""), config); });
}

bool IsLoopback(const std::string& host) {
  if (host == "localhost") return true;
  boost::system::error_code error;
  boost::asio::ip::address address = boost::asio::ip::make_address(host, error);
  return !error && address.is_loopback();
}

void WarnOfRepeated(const Document& main, Config& config) {
  for (const RepeatedKey& key : main.repeated) config.warnings.push_back(key.ToString());
  for (const RepeatedName& image : RepeatedDiskImages(main.root)) config.warnings.push_back(image.ToString());
  for (const RepeatedName& name : RepeatedNames(main.root)) config.warnings.push_back(name.ToString());
}

std::vector<Error> TlsFaults(const ZooKeeperTls& tls) {
  std::vector<Error> faults;
  auto add = [&faults](std::string message) { faults.emplace_back(Verdict::kInvalid, std::move(message)); };
  for (const auto& [key, path] :
       {std::pair("cert", tls.cert), std::pair("key", tls.key), std::pair("ca", tls.ca)}) {
    if (path.empty()) {
      add(fmt::format("zookeeper-tls.{} is missing: a TLS connection to ZooKeeper needs cert, key and ca",
                      key));
      continue;
    }
    errno = 0;
    std::ifstream file(path);
    bool is_readable = file && !(file.peek() == std::ifstream::traits_type::eof() && file.bad());
    if (!is_readable)
      add(fmt::format("zookeeper-tls.{}: {} cannot be read: {}", key, path, std::strerror(errno)));
  }
  return faults;
}

}  // namespace

std::string DriverHint(std::string_view name, const std::vector<std::string>& drivers) {
  if (drivers.empty()) return "";
  std::optional<std::string> nearest = NearestSpelling(name, drivers);
  return fmt::format(
      "; {}there are {}. Drivers from elsewhere are loaded from --drivers-dir or NODEPOOL_DRIVERS_PATH",
      nearest ? fmt::format("did you mean '{}'? ", *nearest) : "", Join(drivers, ", "));
}

std::string DriverOf(const std::string& provider_name, const Value& section) {
  if (provider_name.starts_with("fake")) return "fake";
  const Value* driver = section.Find("driver");
  bool is_scalar = driver != nullptr && !driver->is_null() && driver->kind() != Value::Kind::kList &&
                   driver->kind() != Value::Kind::kMap;
  return is_scalar ? driver->text() : "openstack";
}

bool IsFullyKnown(const Schema& driver_schema) {
  return driver_schema.kind() == Schema::Kind::kMap && driver_schema.element() == nullptr;
}

LoadResult LoadAll(const std::string& path, const Expected<Document>& main, const LoadOptions& options) {
  LoadResult result;
  result.config.path = path;
  if (!main) result.faults.push_back(main.error());
  Expected<Document> secure;  // empty without a file
  if (options.secure_path) secure = ReadDocument(*options.secure_path, options.environment);
  if (!secure) result.faults.push_back(secure.error());
  if (!result.faults.empty()) return result;
  ReadBoth(main->root, secure->root, options, result);
  Config& config = result.config;
  WarnOfRepeated(*main, config);
  for (ZooKeeperServer& server : config.zookeeper.servers) {
    if (server.port == 0) server.port = config.zookeeper.tls ? kTlsPort : kPlainPort;
  }
  for (std::string& warning : config.warnings) warning = fmt::format("{}: {}", path, warning);
  for (const RepeatedKey& repeated : secure->repeated)
    config.warnings.push_back(fmt::format("{}: {}", *options.secure_path, repeated.ToString()));
  return result;
}

Expected<Config> Load(const std::string& path, const LoadOptions& options) {
  LoadResult result = LoadAll(path, ReadDocument(path, options.environment), options);
  if (!result.faults.empty()) return std::unexpected(result.faults.front());
  return std::move(result.config);
}

std::vector<Error> ZooKeeperFaults(const ZooKeeperSettings& settings) {
  if (settings.servers.empty())
    return {Error(Verdict::kInvalid, "No ZooKeeper servers specified in config.")};
  if (settings.tls) return TlsFaults(*settings.tls);
  std::vector<Error> faults;
  for (const ZooKeeperServer& server : settings.servers) {
    if (settings.insecure || IsLoopback(server.host)) continue;
    faults.emplace_back(
        Verdict::kInvalid,
        fmt::format("A TLS connection to ZooKeeper is required; set zookeeper-tls, or zookeeper-insecure: "
                    "true to reach {} without",
                    server.host));
  }
  return faults;
}

Expected<void> CheckZooKeeperSettings(const ZooKeeperSettings& settings) {
  std::vector<Error> faults = ZooKeeperFaults(settings);
  if (!faults.empty()) return std::unexpected(faults.front());
  return {};
}

}  // namespace nodepool::config
