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
    result->fault = provider.Fail("cloud", error.message()).In(config.path).message();
    result->cloud_config.image_format.clear();  // not known, so that no build is made for it
  }
  ReadOpenstackConfig(section, result->cloud_config.image_format, config, *result);
  result->fingerprint += "\n" + result->cloud_config.fingerprint + result->fault;
  return result;
}

}  // namespace nodepool::drivers::openstack
