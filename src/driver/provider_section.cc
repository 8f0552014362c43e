#include "driver/provider_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "config/disk_images.h"
#include "config/main_schema.h"

namespace nodepool::driver {

using config::Schema;
using config::Section;
using config::Setting;

std::vector<Setting> PoolSettings() {
  return {
      Setting("max-servers", Schema::Int(), "Nodes of this pool at a time; 0 or less disables it.")
          .Unit("nodes"),
      Setting("node-attributes", Schema::OpenMap(Schema::Any()), "Stored with each node, for its client."),
      Setting("priority", Schema::Int(),
              "The pool with the lowest is asked first; default the provider's, else 100."),
  };
}

std::vector<Setting> ConnectionTypeSettings() {
  return {
      Setting("connection-type", Schema::String(), "How to connect to the node: ssh, winrm ...")
          .Default("ssh"),
      Setting("connection-port", Schema::Int(), "Port for it; 22, or 5986 for winrm."),
  };
}

Section OpenProvider(const config::ProviderSection& section, const Schema& schema) {
  return Section(section.source, config::WithCommonSettings(schema),
                 fmt::format("provider {}", section.name));
}

void ReadProvider(const config::ProviderSection& section, const Section& provider, ProviderConfig& result) {
  result.name = section.name;
  result.driver = section.driver;
  result.max_concurrency = ReadCount(provider, "max-concurrency");
  result.fingerprint = fmt::format("{} {}", section.driver, config::CanonicalJson(section.source));
}

void ReadPool(const Section& pool, const Section& provider, PoolConfig& result) {
  result.name = PoolName(pool.Text("name"));
  if (result.name.empty()) throw pool.Fail("name", "is required");
  if (std::optional<double> servers = pool.OptionalFloat("max-servers")) result.max_servers = *servers;
  if (pool.Has("priority")) {
    result.priority = ReadCount(pool, "priority");
  } else if (provider.Has("priority")) {
    result.priority = ReadCount(provider, "priority");
  }
  if (pool.Has("node-attributes")) result.node_attributes = ReadObject(pool, "node-attributes");
}

LabelName ReadLabelName(const Section& section, std::string_view key, const config::Config& config) {
  return CheckLabelName(section.Text(key), section, key, config);
}

LabelName CheckLabelName(const std::string& text, const Section& section, std::string_view key,
                         const config::Config& config) {
  LabelName name(text);
  if (config.labels.contains(name)) return name;
  std::vector<std::string> names;
  for (const auto& [label, settings] : config.labels) names.push_back(label.value);
  std::optional<std::string> nearest = NearestSpelling(text, names);
  throw section.Fail(key, fmt::format("label '{}' is not one of the top-level labels{}", Excerpt(text),
                                      nearest ? fmt::format("; did you mean '{}'?", *nearest) : ""));
}

void ReadConnectionType(const Section& section, ConnectionSettings& result) {
  result.connection_type = section.Text("connection-type");
  std::int64_t port =
      section.OptionalInt("connection-port").value_or(result.connection_type == "winrm" ? 5986 : 22);
  if (port < 1 || port > 65535) throw section.Fail("connection-port", "expected a port from 1 to 65535");
  result.connection_port = static_cast<int>(port);
}

boost::json::object ReadObject(const Section& section, std::string_view key) {
  const config::Value* found = section.Raw(key);
  if (found == nullptr) return {};
  if (found->kind() != config::Value::Kind::kMap) {
    throw section.Fail(key, fmt::format("expected a mapping, found {}", found->KindName()));
  }
  return found->ToJson().as_object();
}

int ReadCount(const Section& section, std::string_view key) {
  constexpr std::int64_t kMax = std::numeric_limits<int>::max();
  return static_cast<int>(std::clamp(section.Int(key), -kMax, kMax));
}

}  // namespace nodepool::driver
