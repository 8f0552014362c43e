#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/schema/section.h"
#include "driver/provider_config.h"

namespace nodepool::driver {

// What the sections of most drivers have in common (configuration.md 9, drivers.md 1.8). All functions throw
// Error(kInvalid) with line and column.

// Settings for schemas: `max-servers`, `node-attributes`, `priority`.
std::vector<config::Setting> PoolSettings();
// Settings for schemas: `connection-type`, `connection-port`.
std::vector<config::Setting> ConnectionTypeSettings();

// The section as a provider mapping: `schema` is the driver's, without common keys.
config::Section OpenProvider(const config::ProviderSection& section, const config::Schema& schema);

// Reads name, driver and max-concurrency; the fingerprint is the section itself.
void ReadProvider(const config::ProviderSection& section, const config::Section& provider,
                  ProviderConfig& result);

// Reads name, max-servers, node-attributes and the priority, which the provider's replaces where it has none.
void ReadPool(const config::Section& pool, const config::Section& provider, PoolConfig& result);

// Reads the label's name, which must be one of the top-level labels.
LabelName ReadLabelName(const config::Section& section, std::string_view key, const config::Config& config);
// The same check for a name that was read already.
LabelName CheckLabelName(const std::string& name, const config::Section& section, std::string_view key,
                         const config::Config& config);

// Reads type and port; the port's default depends on the type (22, winrm 5986).
void ReadConnectionType(const config::Section& section, ConnectionSettings& result);

// A mapping as JSON; empty when absent.
boost::json::object ReadObject(const config::Section& section, std::string_view key);

// A count as an int; larger numbers become the largest int.
int ReadCount(const config::Section& section, std::string_view key);

}  // namespace nodepool::driver
