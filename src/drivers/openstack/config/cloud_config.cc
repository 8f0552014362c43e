#include "drivers/openstack/config/cloud_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <charconv>

#include "base/error.h"
#include "base/log/logging.h"
#include "base/text.h"
#include "drivers/openstack/config/cloud_files.h"

namespace nodepool::drivers::openstack {

namespace json = boost::json;

namespace {

constexpr int kMaxRetries = 100;

struct ServiceNames {
  Service service;
  std::vector<std::string> prefixes;  // prefixes of its settings; the first is the official one
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
  if (error != std::errc() || end != text.data() + text.size() || count < 0 || count > kMaxRetries) {
    throw reader.Fail(fmt::format("{}_status_code_retries must be a number from 0 to {}",
                                  names.prefixes.front(), kMaxRetries));
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
  // Older files name one network of each kind.
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
  // IPv4 may be forced from outside the cloud's own settings.
  config.fingerprint = config.name + json::serialize(cloud) + (config.forces_ipv4 ? "4" : "");
  return config;
}

namespace {

constexpr std::array kAuthOptions = {"auth_url",
                                     "username",
                                     "user_id",
                                     "user_name",
                                     "password",
                                     "token",
                                     "project_id",
                                     "project_name",
                                     "tenant_id",
                                     "tenant_name",
                                     "user_domain_id",
                                     "user_domain_name",
                                     "project_domain_id",
                                     "project_domain_name",
                                     "domain_id",
                                     "domain_name",
                                     "default_domain_id",
                                     "default_domain_name",
                                     "trust_id",
                                     "system_scope",
                                     "endpoint",
                                     "application_credential_id",
                                     "application_credential_name",
                                     "application_credential_secret"};

void FillMissing(json::object& auth, const char* key, const json::value& value) {
  json::value* present = auth.if_contains(key);
  if (present == nullptr || present->is_null()) auth[key] = value;
}

void Rename(json::object& auth, const char* old_name, const char* new_name) {
  const json::value* value = auth.if_contains(old_name);
  if (value == nullptr) return;
  json::value copy = *value;
  auth.erase(old_name);
  FillMissing(auth, new_name, copy);
}

// A single domain is both the user's and the project's, if a project is the scope.
void SpreadDomain(json::object& auth) {
  bool has_project =
      !TextOf(auth.if_contains("project_id")).empty() || !TextOf(auth.if_contains("project_name")).empty();
  auto spread = [&auth](const char* from, const char* user, const char* project) {
    const json::value* value = auth.if_contains(from);
    if (value == nullptr || value->is_null()) return;
    json::value copy = *value;
    FillMissing(auth, user, copy);
    FillMissing(auth, project, copy);
  };
  spread("default_domain_id", "user_domain_id", "project_domain_id");
  spread("default_domain_name", "user_domain_name", "project_domain_name");
  if (!has_project) return;
  spread("domain_id", "user_domain_id", "project_domain_id");
  spread("domain_name", "user_domain_name", "project_domain_name");
  auth.erase("domain_id");
  auth.erase("domain_name");
}

json::object Domain(const Credentials& credentials, const std::string& prefix) {
  if (const std::string& id = credentials.Get(prefix + "_id"); !id.empty()) return {{"id", id}};
  if (const std::string& name = credentials.Get(prefix + "_name"); !name.empty()) return {{"name", name}};
  return {};
}

json::object User(const Credentials& credentials) {
  if (const std::string& id = credentials.Get("user_id"); !id.empty()) return {{"id", id}};
  json::object user{{"name", credentials.Get("username")}};
  json::object domain = Domain(credentials, "user_domain");
  if (!domain.empty()) user["domain"] = std::move(domain);
  return user;
}

json::object Identity(const Credentials& credentials) {
  if (credentials.type == "token") {
    return {{"methods", json::array{"token"}}, {"token", {{"id", credentials.Get("token")}}}};
  }
  if (credentials.type == "v3applicationcredential") {
    json::object application{{"secret", credentials.Get("application_credential_secret")}};
    if (const std::string& id = credentials.Get("application_credential_id"); !id.empty()) {
      application["id"] = id;
    } else {
      application["name"] = credentials.Get("application_credential_name");
      application["user"] = User(credentials);
    }
    return {{"methods", json::array{"application_credential"}},
            {"application_credential", std::move(application)}};
  }
  json::object user = User(credentials);
  user["password"] = credentials.Get("password");
  return {{"methods", json::array{"password"}}, {"password", {{"user", std::move(user)}}}};
}

// Empty: the token's scope is the user's default, or fixed by the credential.
json::object Scope(const Credentials& credentials) {
  if (credentials.type == "v3applicationcredential") return {};
  if (json::object domain = Domain(credentials, "domain"); !domain.empty()) return {{"domain", domain}};
  if (const std::string& id = credentials.Get("project_id"); !id.empty()) {
    return {{"project", {{"id", id}}}};
  }
  if (const std::string& name = credentials.Get("project_name"); !name.empty()) {
    json::object project{{"name", name}};
    json::object domain = Domain(credentials, "project_domain");
    if (!domain.empty()) project["domain"] = std::move(domain);
    return {{"project", std::move(project)}};
  }
  if (const std::string& trust = credentials.Get("trust_id"); !trust.empty()) {
    return {{"OS-TRUST:trust", {{"id", trust}}}};
  }
  if (!credentials.Get("system_scope").empty()) return {{"system", {{"all", true}}}};
  return {};
}

void Require(const Credentials& credentials, const std::string& cloud,
             std::initializer_list<const char*> alternatives) {
  std::vector<std::string> names;
  for (const char* option : alternatives) {
    if (!credentials.Get(option).empty()) return;
    names.emplace_back(option);
  }
  throw Error(Verdict::kInvalid, fmt::format("cloud {}: auth needs {}", cloud, Join(names, " or ")));
}

void Check(const Credentials& credentials, const std::string& cloud, bool is_version_3) {
  if (credentials.type == "none") return Require(credentials, cloud, {"endpoint"});
  Require(credentials, cloud, {"auth_url"});
  if (credentials.type == "token") Require(credentials, cloud, {"token"});
  if (credentials.type == "password") {
    Require(credentials, cloud, {"username", "user_id"});
    Require(credentials, cloud, {"password"});
  }
  if (credentials.type == "v3applicationcredential") {
    Require(credentials, cloud, {"application_credential_secret"});
    Require(credentials, cloud, {"application_credential_id", "application_credential_name"});
  }
  bool needs_domain = is_version_3 && !credentials.Get("project_name").empty() &&
                      credentials.Get("project_id").empty() && credentials.type != "v3applicationcredential";
  if (needs_domain) Require(credentials, cloud, {"project_domain_name", "project_domain_id"});
}

}  // namespace

void GatherAuth(json::object& settings) {
  json::value* present = settings.if_contains("auth");
  json::object auth = present != nullptr && present->is_object() ? present->as_object() : json::object();
  for (const char* option : kAuthOptions) {
    const json::value* value = settings.if_contains(option);
    if (value == nullptr) continue;
    FillMissing(auth, option, *value);
    settings.erase(option);
  }
  Rename(auth, "tenant_id", "project_id");
  Rename(auth, "tenant_name", "project_name");
  Rename(auth, "user_name", "username");
  SpreadDomain(auth);
  settings["auth"] = std::move(auth);
}

Credentials ReadCredentials(const json::object& settings, const std::string& cloud) {
  std::string type = Lower(TextOf(settings.if_contains("auth_type")));
  if (type.empty()) type = "password";
  constexpr std::array kTypes = {"password", "v3password", "token", "v3token", "v3applicationcredential",
                                 "none"};
  if (std::ranges::find(kTypes, type) == kTypes.end()) {
    throw Error(Verdict::kInvalid,
                fmt::format("cloud {}: auth_type {} is not supported; these are: {}", cloud, Excerpt(type),
                            Join({kTypes.begin(), kTypes.end()}, ", ")));
  }
  bool is_version_3 = type.starts_with("v3");
  Credentials credentials;
  credentials.type = type == "v3password" || type == "v3token" ? type.substr(2) : type;
  for (const auto& [option, value] : settings.at("auth").as_object()) {
    credentials.options[std::string(option)] = TextOf(&value);
  }
  Check(credentials, cloud, is_version_3);
  return credentials;
}

json::object TokenRequest(const Credentials& credentials) {
  json::object auth{{"identity", Identity(credentials)}};
  json::object scope = Scope(credentials);
  if (!scope.empty()) auth["scope"] = std::move(scope);
  return {{"auth", std::move(auth)}};
}

}  // namespace nodepool::drivers::openstack
