#include "drivers/aws/aws_driver.h"

#include "base/version.h"
#include "drivers/aws/aws_adapter.h"
#include "drivers/aws/config/aws_settings.h"
#include "net/http/curl_client.h"
#include "process/command.h"

namespace nodepool::drivers {

AwsDriver::AwsDriver(std::optional<aws::Variables> variables) : variables_(std::move(variables)) {}

const config::Schema& AwsDriver::ProviderSchema() const { return aws::AwsSchema(); }

std::shared_ptr<const driver::ProviderConfig> AwsDriver::LoadProviderConfig(
    const config::ProviderSection& section, config::Config& config) {
  return aws::LoadAwsConfig(section, config);
}

std::unique_ptr<driver::cloud::Adapter> AwsDriver::CreateAdapter(
    const driver::cloud::AdapterEnvironment& environment,
    std::shared_ptr<const driver::ProviderConfig> config) {
  auto settings = std::dynamic_pointer_cast<const aws::AwsConfig>(config);
  aws::Variables variables = variables_ ? *variables_ : process::OwnEnvironment();
  aws::Profiles profiles = aws::ReadProfiles(variables);
  aws::Account account =
      aws::ResolveAccount(profiles, variables, settings->region_name, settings->profile_name);
  auto client = std::make_unique<net::CurlClient>(environment.loop, environment.blocking_pool,
                                                  "nodepool/" + std::string(Version()));
  return std::make_unique<aws::AwsAdapter>(environment, std::move(settings), std::move(account),
                                           std::move(variables), std::move(client));
}

}  // namespace nodepool::drivers
