#pragma once

#include <memory>
#include <string>

#include "config/config.h"
#include "config/schema/bindings.h"
#include "driver/provider_config.h"

namespace nodepool::driver {

// What the sections of most drivers have in common (configuration.md 9, drivers.md 1.8): settings bound to
// the members of the configuration, to which a driver adds its own with Bindings::With, and functions that
// read a section with them. All functions that read throw Error(kInvalid) with line and column.

// `name`, `max-servers`, `node-attributes`, `priority`.
config::Bindings<PoolConfig> PoolSettings(std::string help_of_name = "Name of the pool.");
// `name` where the validator accepts a pool without one; for PoolSettings().With().
config::Bindings<PoolConfig> OptionalPoolName();
// A limit of a pool, in PoolConfig::limits.
config::Binding<PoolConfig> Limit(config::Setting setting, std::string resource);

// Overlays amounts with those of a mapping of resources to numbers; absent: with none.
void ReadAmounts(const config::Section& section, std::string_view key, Resources& amounts);

// `connection-type`, `connection-port`; the port's default depends on the type: 22, winrm 5986.
config::Bindings<ConnectionSettings> ConnectionTypeSettings();
// How to log in to machines of an image: `username`, `python-path`, `shell-type`, and these two.
config::Bindings<ConnectionSettings> LoginSettings();

// The section as a provider mapping: `schema` is the driver's, without common keys.
config::Section OpenProvider(const config::ProviderSection& section, const config::Schema& schema);

// Reads what all drivers share: name, driver, max-concurrency, priority and breaker; the fingerprint is the
// section itself.
void ReadCommonSettings(const config::ProviderSection& source, const config::Section& provider,
                        ProviderConfig& result);

// Reads these, and the driver's own settings. Returns the section, for what they do not read: its lists.
template <class Config>
config::Section ReadProvider(const config::ProviderSection& source, const config::Bindings<Config>& settings,
                             Config& result) {
  config::Section provider = OpenProvider(source, settings.ToSchema());
  ReadCommonSettings(source, provider, result);
  settings.Read(provider, result);
  return provider;
}

// A pool of the provider with what its section says; what it does not say is as in `defaults`.
template <class Pool>
std::shared_ptr<Pool> ReadPool(const config::Section& section, const config::Bindings<Pool>& settings,
                               const ProviderConfig& provider, const Pool& defaults = {}) {
  auto pool = std::make_shared<Pool>(defaults);
  pool->priority = provider.priority;
  settings.Read(section, *pool);
  return pool;
}

// Throws unless the label that the section names under `key` is one of the top-level labels.
void CheckLabelName(const LabelName& name, const config::Section& section, std::string_view key,
                    const config::Config& config);

// A label of the pool with what its section says, checked; what it does not say is as in `defaults`.
template <class Label>
std::shared_ptr<Label> ReadLabel(const config::Section& section, const config::Bindings<Label>& settings,
                                 const config::Config& config, const Label& defaults = {}) {
  auto label = std::make_shared<Label>(defaults);
  settings.Read(section, *label);
  CheckLabelName(label->name, section, "name", config);
  return label;
}

// A warning about a setting, with file, line and column.
void Warn(config::Config& config, const config::Section& section, std::string_view key,
          std::string_view message);

}  // namespace nodepool::driver
