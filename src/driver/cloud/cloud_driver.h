#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "driver/cloud/adapter.h"
#include "driver/driver.h"
#include "driver/provider_environment.h"
#include "net/http/http_client.h"
#include "process/command.h"

namespace nodepool::driver::cloud {

// Contacts a machine over the network and returns its host keys ("<type> <base64>"), or throws kTimedOut if
// it did not answer by the deadline. `wants_keys` false: only waits until the port accepts connections.
using HostKeyScan = std::function<Task<std::vector<std::string>>(std::string host, int port, bool wants_keys,
                                                                 SteadyTime deadline)>;

// Makes the adapter of a provider; not null.
using MakeAdapter = std::function<std::unique_ptr<Adapter>(const AdapterEnvironment&)>;

// The provider around an adapter: launches with attempts and time-outs, deletion,
// quota with a cache, leak detection, zones (drivers.md 5). All cloud drivers are
// this provider with an adapter of their own. `make` is called once, here. `scan` empty: the adapter reports
// host keys, and machines are never contacted.
std::unique_ptr<Provider> MakeCloudProvider(ProviderEnvironment environment,
                                            std::shared_ptr<const ProviderConfig> config,
                                            const MakeAdapter& make, HostKeyScan scan);

// A driver that consists of an adapter; drivers of clouds derive from it. The framework implements what
// launchers, builders and commands ask of a driver with it.
class CloudDriver : public driver::Driver {
 public:
  // Creates the adapter of one provider; `config` is LoadProviderConfig's result, and everything in
  // `environment` outlives the adapter. Called on the loop: it must not block. An Error means that the
  // provider cannot be used now.
  virtual std::unique_ptr<Adapter> CreateAdapter(const AdapterEnvironment& environment,
                                                 std::shared_ptr<const ProviderConfig> config) = 0;

  // Whether adapters report the host keys of all machines. If so, machines are never contacted; otherwise
  // keys are read over the network.
  virtual bool reports_host_keys() const { return false; }

  std::unique_ptr<Provider> CreateProvider(ProviderEnvironment environment,
                                           std::shared_ptr<const ProviderConfig> config) override;
  std::unique_ptr<ImageStore> CreateImageStore(DriverEnvironment environment,
                                               std::shared_ptr<const ProviderConfig> config) override;
  std::unique_ptr<OperatorTools> CreateOperatorTools(ToolsEnvironment environment,
                                                     std::shared_ptr<const ProviderConfig> config) override;
};

// Reads host keys over the network.
HostKeyScan NetworkScan(const DriverEnvironment& environment);

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
