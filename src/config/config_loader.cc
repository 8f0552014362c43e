#include "config/config_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include "base/text.h"
#include "config/disk_images.h"
#include "config/main_schema.h"
#include "config/schema/section.h"

namespace nodepool::config {

namespace {

const Value::List& NamedEntries(const Value& map, std::string_view key) {
  static const Value::List none;
  const Value* found = map.Find(key);
  return found != nullptr && found->kind() == Value::Kind::kList ? found->list() : none;
}

std::string EntryName(const Value& entry) {
  const Value* name = entry.Find("name");
  return name != nullptr && name->is_scalar() ? name->text() : "";
}

// `kind`: "pool"; `owner`: " of provider a".
void AddRepeated(const Value& map, std::string_view key, std::string_view kind, std::string_view owner,
                 std::vector<RepeatedName>& repeated) {
  TextMap<Position> known;
  for (const Value& entry : NamedEntries(map, key)) {
    std::string name = EntryName(entry);
    if (name.empty()) continue;
    auto [before, is_new] = known.try_emplace(name, entry.position());
    if (is_new) continue;
    repeated.push_back(
        {fmt::format("{} {}{}", kind, Excerpt(name), owner), before->second, entry.position()});
    before->second = entry.position();
  }
}

}  // namespace

std::string RepeatedName::ToString() const {
  return fmt::format("line {}, column {}: {} is defined again; what line {} defines has no effect",
                     again.line, again.column, what, before.line);
}

std::vector<RepeatedName> RepeatedNames(const Value& document) {
  std::vector<RepeatedName> repeated;
  AddRepeated(document, "labels", "label", "", repeated);
  AddRepeated(document, "providers", "provider", "", repeated);
  for (const Value& provider : NamedEntries(document, "providers")) {
    std::string of_provider = fmt::format(" of provider {}", Excerpt(EntryName(provider)));
    AddRepeated(provider, "diskimages", "diskimage", of_provider, repeated);
    AddRepeated(provider, "cloud-images", "cloud image", of_provider, repeated);
    AddRepeated(provider, "pools", "pool", of_provider, repeated);
    for (const Value& pool : NamedEntries(provider, "pools")) {
      std::string of_pool = fmt::format(" of pool {}{}", Excerpt(EntryName(pool)), of_provider);
      AddRepeated(pool, "labels", "label", of_pool, repeated);
    }
  }
  return repeated;
}

std::vector<RepeatedName> RepeatedDiskImages(const Value& document) {
  std::vector<RepeatedName> repeated;
  AddRepeated(document, "diskimages", "diskimage", "", repeated);
  return repeated;
}

namespace {

void ReadTopLevel(const Section& root, Config& config) {
  TopLevelSettings().Read(root, config);
  if (config.build_log_dir.empty()) config.build_log_dir = Config().build_log_dir;
  config.build_log_retention = std::max(config.build_log_retention, -1);
  if (config.max_hold_age <= Duration::zero()) config.max_hold_age.reset();
  const std::optional<WebAppSettings::Tls>& tls = config.webapp.tls;
  if (tls && (tls->cert.empty() || tls->key.empty()))
    throw root.Sub("webapp").Fail("tls", "expected cert and key");
}

void ReadLabels(const Section& root, Config& config) {
  for (const Section& section : root.Sections("labels")) {
    Label label;
    MainLabelSettings().Read(section, label);
    label.min_ready = std::max(label.min_ready, -1);
    if (label.max_ready_age <= Duration::zero()) label.max_ready_age.reset();
    LabelName name = label.name;
    config.labels[name] = std::move(label);
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
    ConnectionSettings().Read(root, config.zookeeper);
    config.web_tokens = ReadWebTokens(root);
  });
  std::map<std::string, RunnerCredentials> runner_secrets;
  in_secure([&] { runner_secrets = ReadRunnerSecrets(Section(secure, SecureSchema(), "")); });
  bool reads_main = in_main([&] { ReadMainFile(main, options, in_main, result); });
  result.knows_zookeeper &= reads_main;
  if (reads_main)
    in_main([&] { config.runners = ReadRunners(Section(main, MainSchema(), ""), runner_secrets); });
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
  SetUsualPorts(config.zookeeper);
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
    return {Error(Verdict::kInvalid,
                  "No ZooKeeper servers specified in config. `nodepool standalone` brings one.")};
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
