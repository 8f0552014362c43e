#include "driver/loading/load_config.h"

#include <fmt/format.h>

#include <functional>

#include "base/log/logging.h"
#include "driver/loading/section_faults.h"

namespace nodepool::driver {

namespace {

config::DriverSchemas SchemasOf(const Registry& drivers, config::DriverSchemas others) {
  return [&drivers, others = std::move(others)](std::string_view name) -> const config::Schema* {
    Driver* driver = drivers.Find(name);
    if (driver == nullptr) return others ? others(name) : nullptr;
    static const config::Schema anything = config::Schema::Any();
    try {
      return &driver->ProviderSchema();
    } catch (...) {
      log::Logger("nodepool.driver.Drivers")
          .Error("Driver {} provides no schema; its sections are not checked: {}", name,
                 MessageOf(std::current_exception()));
      return &anything;
    }
  };
}

void ResetDrivers(const Registry& drivers) {
  for (const std::string& name : drivers.Names()) {
    try {
      drivers.Find(name)->Reset();
    } catch (...) {
      log::Logger("nodepool.driver.Drivers")
          .Error("Driver {} failed in Reset: {}", name, MessageOf(std::current_exception()));
    }
  }
}

// Reads one provider's section. The error is what is wrong with it; of a driver that fails
// the provider is left out, with a warning.
Expected<void> LoadSection(const config::ProviderSection& section, const Registry& drivers,
                           LoadedConfig& loaded) {
  auto skip = [&](const std::string& why) {
    config::Position position = section.source.position();
    loaded.common.warnings.push_back(fmt::format("{}:{}:{}: provider {} is skipped: {}", loaded.common.path,
                                                 position.line, position.column, section.name, why));
  };
  Driver* driver = drivers.Find(section.driver);
  if (driver == nullptr) {
    skip(fmt::format("this program has no driver {0}; if there is a package nodepool-{0}, install it",
                     section.driver));
    return {};
  }
  try {
    std::shared_ptr<const ProviderConfig> provider = driver->LoadProviderConfig(section, loaded.common);
    if (provider && provider->name == section.name) {
      loaded.providers[section.name] = std::move(provider);
    } else {
      skip(fmt::format("its driver {} failed: it made nothing of the section", section.driver));
    }
  } catch (const Error& error) {
    return std::unexpected(error);
  } catch (...) {
    skip(fmt::format("its driver {} failed: {}", section.driver, MessageOf(std::current_exception())));
  }
  return {};
}

}  // namespace

config::LoadOptions LoadOptionsFor(const Registry& drivers, config::DriverSchemas others,
                                   std::optional<std::string> secure_path) {
  return {.secure_path = std::move(secure_path),
          .drivers = SchemasOf(drivers, std::move(others)),
          .driver_names = drivers.Names()};
}

std::optional<ProviderName> ProviderThatReachesThisHost(const LoadedConfig& config) {
  auto found = std::ranges::find_if(config.providers,
                                    [](const auto& entry) { return entry.second->reaches_this_host; });
  return found == config.providers.end() ? std::nullopt : std::optional(found->first);
}

Expected<std::shared_ptr<const LoadedConfig>> LoadConfig(const std::string& path,
                                                         const std::optional<std::string>& secure_path,
                                                         const Registry& drivers,
                                                         config::DriverSchemas others) {
  ResetDrivers(drivers);
  Expected<config::Config> common =
      config::Load(path, LoadOptionsFor(drivers, std::move(others), secure_path));
  if (!common) return std::unexpected(common.error());
  auto loaded = std::make_shared<LoadedConfig>();
  loaded->common = std::move(*common);
  for (const config::ProviderSection& section : loaded->common.providers) {
    Expected<void> read = LoadSection(section, drivers, *loaded);
    if (!read) return std::unexpected(read.error().In(path));
  }
  return loaded;
}

LoadReport LoadAll(const std::string& path, const Registry& drivers, const config::LoadOptions& options) {
  ResetDrivers(drivers);
  config::LoadResult common = config::LoadAll(path, options);
  LoadReport report{{std::move(common.config), {}}, std::move(common.faults)};
  if (!report.faults.empty()) return report;
  for (const config::ProviderSection& section : report.loaded.common.providers) {
    Expected<void> read = LoadSection(section, drivers, report.loaded);
    if (read) continue;
    Driver& driver = *drivers.Find(section.driver);
    for (const Error& fault : SectionFaults(driver, section, report.loaded.common, read.error())) {
      report.faults.push_back(fault.In(path));
    }
  }
  return report;
}

}  // namespace nodepool::driver
