#include "driver/load_config.h"

#include <fmt/format.h>

namespace nodepool::driver {

config::DriverSchemas SchemasOf(const Registry& drivers, config::DriverSchemas others) {
  return [&drivers, others = std::move(others)](std::string_view name) -> const config::Schema* {
    if (Driver* driver = drivers.Find(name)) return &driver->ProviderSchema();
    return others ? others(name) : nullptr;
  };
}

Expected<std::shared_ptr<const LoadedConfig>> LoadConfig(const std::string& path,
                                                         const std::optional<std::string>& secure_path,
                                                         const Registry& drivers,
                                                         config::DriverSchemas others) {
  for (const std::string& name : drivers.Names()) drivers.Find(name)->Reset();
  config::LoadOptions options;
  options.secure_path = secure_path;
  options.drivers = SchemasOf(drivers, std::move(others));
  Expected<config::Config> common = config::Load(path, options);
  if (!common) return std::unexpected(common.error());
  auto loaded = std::make_shared<LoadedConfig>();
  loaded->common = std::move(*common);
  for (const config::ProviderSection& section : loaded->common.providers) {
    Driver* driver = drivers.Find(section.driver);
    if (driver == nullptr) {
      loaded->common.warnings.push_back(fmt::format(
          "{}:{}:{}: provider {} is skipped: this program has no driver {}", path,
          section.source.position().line, section.source.position().column, section.name, section.driver));
      continue;
    }
    try {
      loaded->providers[section.name] = driver->LoadProviderConfig(section, loaded->common);
    } catch (const Error& error) {
      return std::unexpected(error.In(path));
    }
  }
  return loaded;
}

}  // namespace nodepool::driver
