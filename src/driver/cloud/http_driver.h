#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "driver/cloud/cloud_driver.h"
#include "net/http/http_client.h"
#include "process/command.h"

namespace nodepool::driver::cloud {

// A driver whose adapters call their cloud over HTTP.
class HttpDriver : public CloudDriver {
 public:
  struct Parts {
    std::string_view name;
    const config::Schema& (*schema)();
    std::function<std::shared_ptr<const ProviderConfig>(const config::ProviderSection&, config::Config&)>
        load;
    std::function<std::unique_ptr<Adapter>(const AdapterEnvironment&, std::shared_ptr<const ProviderConfig>,
                                           process::Environment, std::unique_ptr<net::HttpClient>)>
        make;

    // Of an adapter that is made of just these, and whose configuration `load` has read.
    template <class OwnAdapter, class Load>
    static Parts Of(std::string_view name, const config::Schema& (*schema)(), Load load) {
      auto make = [](const AdapterEnvironment& environment, std::shared_ptr<const ProviderConfig> config,
                     process::Environment variables, std::unique_ptr<net::HttpClient> client) {
        return std::make_unique<OwnAdapter>(environment, std::move(config), std::move(variables),
                                            std::move(client));
      };
      return {name, schema, load, make};
    }
  };

  // `variables` replaces the environment of the process, which is read anew for each adapter.
  HttpDriver(Parts parts, std::optional<process::Environment> variables)
      : parts_(std::move(parts)), variables_(std::move(variables)) {}

  std::string_view name() const override { return parts_.name; }
  const config::Schema& ProviderSchema() const override { return parts_.schema(); }
  std::shared_ptr<const ProviderConfig> LoadProviderConfig(const config::ProviderSection& section,
                                                           config::Config& config) override {
    return parts_.load(section, config);
  }
  std::unique_ptr<Adapter> CreateAdapter(const AdapterEnvironment& environment,
                                         std::shared_ptr<const ProviderConfig> config) override;

 private:
  Parts parts_;
  std::optional<process::Environment> variables_;
};

}  // namespace nodepool::driver::cloud
