#include "drivers/aws/aws_driver.h"

#include "driver/cloud/own_types.h"
#include "drivers/aws/aws_adapter.h"
#include "drivers/aws/config/aws_settings.h"
#include "drivers/aws/credentials/profiles.h"

namespace nodepool::drivers {

namespace {

std::unique_ptr<driver::cloud::Adapter> MakeAwsAdapter(const driver::cloud::AdapterEnvironment& environment,
                                                       std::shared_ptr<const driver::ProviderConfig> config,
                                                       aws::Variables variables,
                                                       std::unique_ptr<net::HttpClient> client) {
  const auto& settings = driver::cloud::As<aws::AwsConfig>(*config);
  aws::Profiles profiles = aws::ReadProfiles(variables);
  aws::Account account =
      aws::ResolveAccount(profiles, variables, settings.region_name, settings.profile_name);
  return std::make_unique<aws::AwsAdapter>(environment, config, std::move(account), std::move(variables),
                                           std::move(client));
}

}  // namespace

AwsDriver::AwsDriver(std::optional<process::Environment> variables)
    : HttpDriver({"aws", &aws::AwsSchema, &aws::LoadAwsConfig, &MakeAwsAdapter}, std::move(variables)) {}

}  // namespace nodepool::drivers
