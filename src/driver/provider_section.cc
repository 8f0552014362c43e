#include "driver/provider_section.h"

#include <fmt/format.h>

#include "base/text.h"
#include "config/disk_images.h"
#include "model/validation.h"

namespace nodepool::driver {

using config::Binding;
using config::Bindings;
using config::Schema;
using config::Section;
using config::Setting;

namespace {

void ReadPoolName(const Section& section, const std::string& key, PoolConfig& pool) {
  pool.name = PoolName(section.Text(key));
  if (pool.name.empty()) throw section.Fail(key, "is required");
}

// After the type, on which its default depends.
void ReadPort(const Section& section, const std::string& key, ConnectionSettings& connection) {
  if (section.IsGiven(key)) {
    connection.connection_port = config::MemberType<int>::Read(section, key);
  } else if (connection.connection_type == "winrm") {
    connection.connection_port = 5986;
  }
}

}  // namespace

Bindings<PoolConfig> PoolSettings(std::string help_of_name) {
  return {
      {Setting("name", Schema::String(), std::move(help_of_name)).Required(), ReadPoolName},
      {Setting("max-servers", Schema::Int(), "Nodes of this pool at a time; 0 or less disables it.")
           .Unit("nodes"),
       &PoolConfig::max_servers},
      {Setting("node-attributes", Schema::OpenMap(Schema::Any()), "Stored with each node, for its client."),
       [](const Section& section, const std::string& key, PoolConfig& pool) {
         if (section.IsGiven(key)) pool.node_attributes = section.Object(key);
       }},
      {Setting("priority", "The pool with the lowest is asked first; default the provider's.").Inherited(),
       &PoolConfig::priority},
  };
}

Bindings<PoolConfig> OptionalPoolName() {
  return {{Setting("name", Schema::String(), "Name of the pool."), ReadPoolName}};
}

Binding<PoolConfig> Limit(Setting setting, std::string resource) {
  if (setting.schema.kind() == Schema::Kind::kAny) setting.schema = Schema::Int();
  return {std::move(setting),
          [resource = std::move(resource)](const Section& section, const std::string& key, PoolConfig& pool) {
            if (section.IsGiven(key)) pool.limits[resource] = section.Float(key);
          }};
}

void ReadAmounts(const Section& section, std::string_view key, Resources& amounts) {
  for (const auto& [name, text] : section.TextMap(key)) {
    std::optional<double> amount = config::LenientFloat(*section.Raw(key)->Find(name));
    if (!amount) throw section.Fail(key, fmt::format("{}: expected a number", Excerpt(name)));
    amounts[name] = *amount;
  }
}

Bindings<ConnectionSettings> ConnectionTypeSettings() {
  return {
      {Setting("connection-type", "How to connect to the node: ssh, winrm ..."),
       &ConnectionSettings::connection_type},
      {Setting("connection-port", Schema::Port(), "Port for it; 22, or 5986 for winrm."), ReadPort},
  };
}

Bindings<ConnectionSettings> LoginSettings() {
  Bindings<ConnectionSettings> settings = {
      {Setting("username", "User for logging in."), &ConnectionSettings::username},
      {Setting("python-path", "Python interpreter on the node."), &ConnectionSettings::python_path},
      {Setting("shell-type", "Shell of the user, as Ansible names it."), &ConnectionSettings::shell_type},
  };
  return settings.With(ConnectionTypeSettings());
}

Section OpenProvider(const config::ProviderSection& section, const Schema& schema) {
  return Section(section.source, config::WithCommonSettings(schema),
                 fmt::format("provider {}", section.name));
}

void ReadCommonSettings(const config::ProviderSection& source, const Section& provider,
                        ProviderConfig& result) {
  result.name = source.name;
  result.driver = source.driver;
  config::CommonSettings().Read(provider, result);
  result.fingerprint = fmt::format("{} {}", source.driver, config::CanonicalJson(source.source));
}

void CheckLabelName(const LabelName& name, const Section& section, std::string_view key,
                    const config::Config& config) {
  if (config.labels.contains(name) || IsValidationLabel(name)) return;
  std::vector<std::string> names;
  for (const auto& [label, settings] : config.labels) names.push_back(label.value);
  std::optional<std::string> nearest = NearestSpelling(name.value, names);
  throw section.Fail(key, fmt::format("label '{}' is not one of the top-level labels{}", Excerpt(name.value),
                                      nearest ? fmt::format("; did you mean '{}'?", *nearest) : ""));
}

void Warn(config::Config& config, const Section& section, std::string_view key, std::string_view message) {
  config.warnings.push_back(section.Fail(key, message).In(config.path).message());
}

}  // namespace nodepool::driver
