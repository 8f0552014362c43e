#include "driver/cloud/http_driver.h"

#include "base/version.h"
#include "net/http/curl_client.h"

namespace nodepool::driver::cloud {

std::unique_ptr<Adapter> HttpDriver::CreateAdapter(const AdapterEnvironment& environment,
                                                   std::shared_ptr<const ProviderConfig> config) {
  auto client = std::make_unique<net::CurlClient>(environment.loop, environment.blocking_pool,
                                                  "nodepool/" + std::string(Version()));
  return parts_.make(environment, std::move(config), variables_ ? *variables_ : process::OwnEnvironment(),
                     std::move(client));
}

}  // namespace nodepool::driver::cloud
