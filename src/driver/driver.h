#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/schema.h"
#include "driver/provider.h"

namespace nodepool::driver {

// A kind of cloud, by name. One object per process; stateless but for global
// configuration caches.
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

  virtual std::unique_ptr<Provider> CreateProvider(ProviderEnvironment environment,
                                                   std::shared_ptr<const ProviderConfig> config) = 0;
};

// The drivers of the process by name. Built-in ones are added in main/.
class Registry {
 public:
  // A name already taken is Error(kInvalid).
  void Add(std::unique_ptr<Driver> driver);
  // Null when there is none.
  Driver* Find(std::string_view name) const;
  std::vector<std::string> Names() const;

 private:
  std::map<std::string, std::unique_ptr<Driver>, std::less<>> drivers_;
};

}  // namespace nodepool::driver
