#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>

#include "config/config_loader.h"
#include "config/validator.h"
#include "drivers/aws/config/aws_config.h"
#include "drivers/aws/config/aws_settings.h"
#include "drivers/fake/fake_config.h"
#include "drivers/gce/config/gce_config.h"
#include "drivers/openstack/config/openstack_config.h"
#include "drivers/schemas/known_drivers.h"
#include "drivers/static/static_config.h"

namespace {

using namespace nodepool;

const config::Schema* SchemaOf(std::string_view driver) {
  if (driver == "aws") return &drivers::aws::AwsSchema();
  if (driver == "gce") return &drivers::gce::GceSchema();
  if (driver == "static") return &drivers::StaticSchema();
  if (driver == "fake") return &drivers::FakeSchema();
  if (driver == "openstack") return &drivers::OpenstackSchema();
  return drivers::KnownDriverSchema(driver);
}

// Whatever a section holds, its driver answers with a configuration or an Error.
void LoadSection(const config::ProviderSection& section, config::Config& config) {
  try {
    if (section.driver == "aws") {
      drivers::aws::LoadAwsConfig(section, config);
    } else if (section.driver == "gce") {
      drivers::gce::LoadGceConfig(section, config);
    } else if (section.driver == "static") {
      drivers::LoadStaticConfig(section, config);
    } else if (section.driver == "fake") {
      drivers::LoadFakeConfig(section, config);
    } else if (section.driver == "openstack") {
      drivers::OpenstackConfig result;
      drivers::ReadOpenstackConfig(section, "raw", config, result);
    }
  } catch (const Error&) {
  }
}

}  // namespace

// Any text: YAML, strict validation, lenient loading with the text as the secure file
// too, and the drivers' reading of their sections.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string path = "/dev/shm/config_fuzz." + std::to_string(getpid());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  config::Environment environment = [](std::string_view) -> std::optional<std::string> {
    return "[x: &a 1, ";
  };
  config::LoadOptions options{.drivers = SchemaOf, .environment = environment};
  config::ValidateFile(path, options);
  if (size % 2 == 1) options.secure_path = path;
  Expected<config::Config> config = config::Load(path, options);
  unlink(path.c_str());
  if (!config) return 0;
  for (const config::ProviderSection& section : config->providers) LoadSection(section, *config);
  return 0;
}
