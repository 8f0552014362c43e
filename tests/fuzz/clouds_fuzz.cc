#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "drivers/openstack/config/cloud_config.h"
#include "drivers/openstack/config/cloud_files.h"

// Any text as clouds.yaml, as the secure file laid over it and as the vendors' profiles:
// every cloud in it is resolved, or refused with Error.

namespace {

using namespace nodepool;
namespace openstack = drivers::openstack;

void Resolve(const openstack::CloudFiles& files, std::optional<std::string> name,
             std::optional<std::string> region) {
  try {
    openstack::ResolveCloud(files, name, region);
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::filesystem::path folder = "/dev/shm/clouds_fuzz." + std::to_string(getpid());
  std::filesystem::create_directories(folder / "openstack");
  auto write = [&](const char* name) {
    std::ofstream(folder / "openstack" / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  };
  write("clouds.yaml");
  if (size % 2 == 1) write("secure.yaml");
  if (size % 3 == 1) write("clouds-public.yaml");
  openstack::Variables variables = {{"XDG_CONFIG_HOME", folder}, {"HOME", folder}};
  if (size % 5 == 1) variables["OS_AUTH_URL"] = "http://cloud.example/{x}";
  std::optional<openstack::CloudFiles> files;
  try {
    files = openstack::ReadCloudFiles(variables);
  } catch (const Error&) {
  }
  std::filesystem::remove_all(folder);
  if (!files) return 0;
  Resolve(*files, std::nullopt, std::nullopt);
  for (const auto& [name, cloud] : files->clouds) {
    Resolve(*files, std::string(name), std::nullopt);
    Resolve(*files, std::string(name), "north");
  }
  return 0;
}
