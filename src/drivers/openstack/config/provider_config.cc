#include "drivers/openstack/config/provider_config.h"

#include "config/schema/section.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers::openstack {

std::shared_ptr<const OpenstackProviderConfig> LoadOpenstackConfig(const config::ProviderSection& section,
                                                                   config::Config& config,
                                                                   const CloudFiles& files) {
  config::Section provider = OpenProvider(section, OpenstackSchema());
  auto result = std::make_shared<OpenstackProviderConfig>();
  try {
    result->cloud_config =
        ResolveCloud(files, provider.OptionalText("cloud"), provider.OptionalText("region-name"));
  } catch (const Error& error) {
    throw provider.Fail("cloud", error.message());
  }
  ReadOpenstackConfig(section, result->cloud_config.image_format, config, *result);
  result->fingerprint += "\n" + result->cloud_config.fingerprint;
  return result;
}

}  // namespace nodepool::drivers::openstack
