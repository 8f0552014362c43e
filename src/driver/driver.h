#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/schema/schema.h"
#include "driver/provider_config.h"
#include "driver/provider_environment.h"

namespace nodepool::driver {

class Provider;       // driver/provider.h
class ImageStore;     // driver/image_store.h
class OperatorTools;  // driver/operator_tools.h

// A kind of cloud, by name. One object per process; has no state except global configuration caches.
class Driver {
 public:
  virtual ~Driver() = default;
  virtual std::string_view name() const = 0;

  // What a provider section of this driver may contain, besides the keys common to
  // all drivers. Validation, error messages and documentation come from it.
  virtual const config::Schema& ProviderSchema() const = 0;

  // Drops cached process-global configuration (e.g. clouds.yaml); called before each
  // load of the configuration.
  virtual void Reset() {}

  // Reads one section; no network. Resolves references to labels and disk images and
  // adds the provider's image format to the disk images it lists. Error(kInvalid)
  // names line and column.
  virtual std::shared_ptr<const ProviderConfig> LoadProviderConfig(const config::ProviderSection& section,
                                                                   config::Config& config) = 0;

  // What a launcher, a builder and a command ask of the driver. `config` is LoadProviderConfig's result. An
  // Error means that it cannot be used now. Default: images are not supported, and a command can do nothing.
  virtual std::unique_ptr<Provider> CreateProvider(ProviderEnvironment environment,
                                                   std::shared_ptr<const ProviderConfig> config) = 0;
  virtual std::unique_ptr<ImageStore> CreateImageStore(DriverEnvironment environment,
                                                       std::shared_ptr<const ProviderConfig> config);
  virtual std::unique_ptr<OperatorTools> CreateOperatorTools(ToolsEnvironment environment,
                                                             std::shared_ptr<const ProviderConfig> config);
};

// The drivers of the process by name. Built-in ones are added in main/, others by
// LoadDrivers (load_drivers.h).
class Registry {
 public:
  static constexpr std::string_view kThisProgram = "this program";

  // `origin` is the file that the driver comes from, or another description of its source for operators. A
  // name already taken is Error(kInvalid), which names both origins (D-86).
  void Add(std::unique_ptr<Driver> driver, std::string origin = std::string(kThisProgram));
  // Null: there is none.
  Driver* Find(std::string_view name) const;
  std::vector<std::string> Names() const;
  // The names of drivers loaded from files, by file.
  std::map<std::string, std::string> NamesByFile() const;

 private:
  struct Entry {
    std::unique_ptr<Driver> driver;
    std::string origin;
  };
  std::map<std::string, Entry, std::less<>> drivers_;
};

}  // namespace nodepool::driver
