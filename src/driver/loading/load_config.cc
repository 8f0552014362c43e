#include "driver/loading/load_config.h"

#include <fmt/format.h>

#include "base/log/logging.h"

namespace nodepool::driver {

config::DriverSchemas SchemasOf(const Registry& drivers, config::DriverSchemas others) {
  return [&drivers, others = std::move(others)](std::string_view name) -> const config::Schema* {
    Driver* driver = drivers.Find(name);
    if (driver == nullptr) return others ? others(name) : nullptr;
    static const config::Schema anything = config::Schema::Any();
    try {
      return &driver->ProviderSchema();
    } catch (...) {
      log::Logger("nodepool.driver.Drivers")
          .Error("Driver {} tells no schema; its sections are not checked: {}", name,
                 MessageOf(std::current_exception()));
      return &anything;
    }
  };
}

Expected<std::shared_ptr<const LoadedConfig>> LoadConfig(const std::string& path,
                                                         const std::optional<std::string>& secure_path,
                                                         const Registry& drivers,
                                                         config::DriverSchemas others) {
  for (const std::string& name : drivers.Names()) {
    try {
      drivers.Find(name)->Reset();
    } catch (...) {
      log::Logger("nodepool.driver.Drivers")
          .Error("Driver {} failed in Reset: {}", name, MessageOf(std::current_exception()));
    }
  }
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
    std::string unexpected;
    try {
      std::shared_ptr<const ProviderConfig> provider = driver->LoadProviderConfig(section, loaded->common);
      if (provider && provider->name == section.name) {
        loaded->providers[section.name] = std::move(provider);
        continue;
      }
      unexpected = "it made nothing of the section";
    } catch (const Error& error) {
      return std::unexpected(error.In(path));
    } catch (...) {
      unexpected = MessageOf(std::current_exception());
    }
    loaded->common.warnings.push_back(fmt::format(
        "{}:{}:{}: provider {} is skipped: its driver {} failed: {}", path, section.source.position().line,
        section.source.position().column, section.name, section.driver, unexpected));
  }
  return loaded;
}

}  // namespace nodepool::driver
