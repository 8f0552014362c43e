#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/schema/section.h"
#include "driver/provider_config.h"

namespace nodepool::driver {

// What the sections of most drivers have in common (configuration.md 9, drivers.md
// 1.8). Everything throws Error(kInvalid) with line and column.

// Settings for schemas: `max-servers`, `node-attributes`, `priority`.
std::vector<config::Setting> PoolSettings();
// Settings for schemas: `connection-type`, `connection-port`.
std::vector<config::Setting> ConnectionTypeSettings();

// The section as a provider mapping: `schema` is the driver's, without common keys.
config::Section OpenProvider(const config::ProviderSection& section, const config::Schema& schema);

// name, driver, max-concurrency, and the section itself as the fingerprint.
void ReadProvider(const config::ProviderSection& section, const config::Section& provider,
                  ProviderConfig& result);

// name, max-servers, node-attributes and the effective priority.
void ReadPool(const config::Section& pool, const config::Section& provider, PoolConfig& result);

// The label's name; it must be one of the top-level labels.
LabelName ReadLabelName(const config::Section& section, std::string_view key, const config::Config& config);
// The same for a name that was read already.
LabelName CheckLabelName(const std::string& name, const config::Section& section, std::string_view key,
                         const config::Config& config);

// Type and port; the port's default depends on the type (22, winrm 5986).
void ReadConnectionType(const config::Section& section, ConnectionSettings& result);

// A mapping as JSON; empty when absent.
boost::json::object ReadObject(const config::Section& section, std::string_view key);

// A count that fits an int; larger ones mean the largest.
int ReadCount(const config::Section& section, std::string_view key);

}  // namespace nodepool::driver
