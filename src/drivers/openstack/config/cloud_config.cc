#include "drivers/openstack/config/cloud_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <charconv>

#include "base/error.h"
#include "base/log/logging.h"
#include "base/text.h"
#include "drivers/openstack/config/cloud_overlay.h"
#include "drivers/openstack/config/credentials.h"

namespace nodepool::drivers::openstack {

namespace json = boost::json;

namespace {

constexpr int kMostRetries = 100;

struct ServiceNames {
  Service service;
  std::vector<std::string> prefixes;  // of its settings; the first is the official one
};

const std::vector<ServiceNames>& AllServices() {
  static const std::vector<ServiceNames> services = {
      {Service::kIdentity, {"identity"}},
      {Service::kCompute, {"compute"}},
      {Service::kNetwork, {"network"}},
      {Service::kImage, {"image"}},
      {Service::kBlockStorage, {"block_storage", "volumev3", "volumev2", "volume", "block_store"}},
  };
  return services;
}

// Reads the flat settings of one cloud.
class Reader {
 public:
  Reader(const json::object& cloud, std::string name) : cloud_(cloud), name_(std::move(name)) {}

  std::string Text(std::string_view key) const { return TextOf(cloud_.if_contains(key)); }

  bool Bool(std::string_view key, bool otherwise) const {
    const json::value* value = cloud_.if_contains(key);
    if (value == nullptr || value->is_null()) return otherwise;
    std::optional<bool> truth = TruthOf(*value);
    if (!truth) throw Fail(fmt::format("{} must be true or false", key));
    return *truth;
  }

  // A text or a list of texts.
  std::vector<std::string> Texts(std::string_view key) const {
    const json::value* value = cloud_.if_contains(key);
    std::vector<std::string> texts;
    if (value == nullptr || value->is_null()) return texts;
    if (!value->is_array()) return {TextOf(value)};
    for (const json::value& item : value->as_array()) texts.push_back(TextOf(&item));
    return texts;
  }

  Error Fail(const std::string& what) const {
    return Error(Verdict::kInvalid, fmt::format("cloud {}: {}", name_, what));
  }

  void Warn(std::string_view what) const {
    log::Logger("nodepool.OpenStackAdapter").Warning("Cloud {} {}", name_, what);
  }

 private:
  const json::object& cloud_;
  std::string name_;
};

std::vector<std::string> Interfaces(const Reader& reader, const std::string& key) {
  std::vector<std::string> interfaces = reader.Texts(key);
  for (std::string& interface : interfaces) {
    if (interface.ends_with("URL")) interface.resize(interface.size() - 3);
  }
  return interfaces;
}

// A setting of a service, by any of its names.
std::string ServiceText(const Reader& reader, const ServiceNames& names, const std::string& suffix) {
  for (const std::string& prefix : names.prefixes) {
    std::string value = reader.Text(prefix + suffix);
    if (!value.empty()) return value;
  }
  return "";
}

// A version of the API with a minor number names a microversion, too: "2.53" (driver-openstack.md 5.3).
VersionNumber DefaultMicroversion(const Reader& reader, const ServiceNames& names) {
  std::string text = ServiceText(reader, names, "_default_microversion");
  VersionNumber version = ParseVersion(text);
  if (!text.empty() && version == VersionNumber()) {
    throw reader.Fail(
        fmt::format("{}_default_microversion must be a version such as 2.90", names.prefixes.front()));
  }
  bool has_microversions = names.service == Service::kCompute || names.service == Service::kBlockStorage;
  if (text.empty() && has_microversions) version = ParseVersion(ServiceText(reader, names, "_api_version"));
  return text.empty() && version.minor == 0 ? VersionNumber() : version;
}

std::optional<int> StatusCodeRetries(const Reader& reader, const ServiceNames& names) {
  std::string text = ServiceText(reader, names, "_status_code_retries");
  if (text.empty() || Lower(text) == "none") return std::nullopt;
  int count = -1;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 0 || count > kMostRetries) {
    throw reader.Fail(fmt::format("{}_status_code_retries must be a number from 0 to {}",
                                  names.prefixes.front(), kMostRetries));
  }
  return count;
}

ServiceSettings ReadService(const Reader& reader, const ServiceNames& names) {
  ServiceSettings settings;
  auto text = [&](const std::string& suffix) { return ServiceText(reader, names, suffix); };
  settings.endpoint_override = text("_endpoint_override");
  if (settings.endpoint_override.empty()) settings.endpoint_override = text("_endpoint");
  settings.type = text("_service_type");
  settings.name = text("_service_name");
  settings.region = text("_region_name");
  settings.api_version = text("_api_version");
  settings.default_microversion = DefaultMicroversion(reader, names);
  settings.status_code_retries = StatusCodeRetries(reader, names);
  for (const std::string& prefix : names.prefixes) {
    settings.exists = settings.exists && reader.Bool("has_" + prefix, true);
    if (settings.interfaces.empty()) settings.interfaces = Interfaces(reader, prefix + "_interface");
  }
  return settings;
}

std::optional<bool> TruthAt(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value == nullptr || value->is_null() ? std::nullopt : TruthOf(*value);
}

std::vector<NetworkSettings> ReadNetworks(const json::object& cloud, const Reader& reader) {
  std::vector<NetworkSettings> networks;
  const json::value* list = cloud.if_contains("networks");
  int nat_destinations = 0;
  int default_interfaces = 0;
  if (list != nullptr && list->is_array()) {
    for (const json::value& item : list->as_array()) {
      if (!item.is_object()) throw reader.Fail("networks must be a list of mappings");
      const json::object& entry = item.as_object();
      NetworkSettings network;
      network.name = TextOf(entry.if_contains("name"));
      if (network.name.empty()) throw reader.Fail("an entry of networks has no name");
      std::optional<bool> external = TruthAt(entry, "routes_externally");
      std::optional<bool> ipv4 = TruthAt(entry, "routes_ipv4_externally");
      std::optional<bool> ipv6 = TruthAt(entry, "routes_ipv6_externally");
      network.routes_ipv4_externally = ipv4 ? ipv4 : external;
      network.routes_ipv6_externally = ipv6 ? ipv6 : external;
      network.is_nat_source = TruthAt(entry, "nat_source").value_or(false);
      network.is_nat_destination = TruthAt(entry, "nat_destination").value_or(false);
      network.is_default_interface = TruthAt(entry, "default_interface").value_or(false);
      nat_destinations += network.is_nat_destination;
      default_interfaces += network.is_default_interface;
      networks.push_back(std::move(network));
    }
  }
  if (nat_destinations > 1) throw reader.Fail("only one of networks can be the nat_destination");
  if (default_interfaces > 1) throw reader.Fail("only one of networks can be the default_interface");
  for (bool is_external : {true, false}) {
    std::string name = reader.Text(is_external ? "external_network" : "internal_network");
    if (name.empty()) continue;
    NetworkSettings network;
    network.name = std::move(name);
    network.routes_ipv4_externally = network.routes_ipv6_externally = is_external;
    network.is_nat_destination = !is_external && nat_destinations == 0;
    networks.push_back(std::move(network));
  }
  return networks;
}

bool HasFloatingIps(const Reader& reader) {
  std::string source = Lower(reader.Text("floating_ip_source"));
  if (source == "nova") {
    reader.Warn("has floating_ip_source nova: there is no nova-network any more, neutron is asked");
  } else if (source != "" && source != "neutron" && source != "none") {
    throw reader.Fail("floating_ip_source must be neutron or None");
  }
  return source != "none";
}

net::TlsSettings ReadTls(const Reader& reader, const Variables& variables) {
  auto home = variables.find("HOME");
  auto path = [&](std::string_view key) {
    std::string text = reader.Text(key);
    if (text.starts_with("~/") && home != variables.end()) return home->second + text.substr(1);
    return text;
  };
  net::TlsSettings tls;
  tls.verifies_peer = reader.Bool("verify", true) && !reader.Bool("insecure", false);
  tls.ca_path = path("cacert");
  tls.certificate_path = path("cert");
  tls.key_path = path("key");
  if (auto bundle = variables.find("REQUESTS_CA_BUNDLE"); tls.ca_path.empty() && bundle != variables.end()) {
    tls.ca_path = bundle->second;
  }
  return tls;
}

std::optional<Duration> ReadTimeout(const Reader& reader) {
  std::string text = reader.Text("api_timeout");
  if (text.empty() || Lower(text) == "none") return std::nullopt;
  char* end = nullptr;
  double seconds = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0' || !(seconds > 0 && seconds < 1e6)) {
    throw reader.Fail("api_timeout must be a number of seconds");
  }
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

std::string_view ToString(Service service) {
  switch (service) {
    case Service::kIdentity:
      return "identity";
    case Service::kCompute:
      return "compute";
    case Service::kNetwork:
      return "network";
    case Service::kImage:
      return "image";
    case Service::kBlockStorage:
      return "block-storage";
  }
  return "";
}

const std::string& Credentials::Get(const std::string& option) const {
  static const std::string empty;
  auto found = options.find(option);
  return found == options.end() ? empty : found->second;
}

CloudConfig ResolveCloud(const CloudFiles& files, const std::optional<std::string>& name,
                         const std::optional<std::string>& region) {
  CloudConfig config;
  json::object cloud = OverlaidCloud(files, name, region, config.name);
  Reader reader(cloud, config.name);
  config.region = reader.Text("region_name");
  config.credentials = ReadCredentials(cloud, config.name);
  config.interfaces = Interfaces(reader, "interface");
  if (config.interfaces.empty()) config.interfaces = {"public"};
  config.tls = ReadTls(reader, files.variables);
  config.api_timeout = ReadTimeout(reader);
  for (const ServiceNames& names : AllServices()) {
    config.Of(names.service) = ReadService(reader, names);
  }
  if (std::string format = reader.Text("image_format"); !format.empty()) config.image_format = format;
  if (reader.Bool("image_api_use_tasks", false)) {
    reader.Warn(
        "has image_api_use_tasks, which is not supported: images are uploaded directly, or imported "
        "with image_use_import");
  }
  config.imports_images = reader.Bool("image_use_import", false);
  if (const json::value* agent = cloud.if_contains("disable_vendor_agent"); agent && agent->is_object()) {
    config.disable_vendor_agent = agent->as_object();
  }
  config.has_floating_ips = HasFloatingIps(reader);
  config.is_private = reader.Bool("private", false);
  config.uses_external_network = reader.Bool("use_external_network", true);
  config.uses_internal_network = reader.Bool("use_internal_network", true);
  config.forces_ipv4 = ForcesIpv4(files, cloud);
  config.networks = ReadNetworks(cloud, reader);
  config.fingerprint = config.name + json::serialize(cloud) + (config.forces_ipv4 ? "4" : "");
  return config;
}

}  // namespace nodepool::drivers::openstack
