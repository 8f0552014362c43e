#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/error.h"
#include "drivers/openstack/config/cloud_config.h"
#include "drivers/openstack/config/cloud_files.h"

// Any texts, separated by a line "----", as clouds.yaml, as the secure file laid over it and as the vendors'
// profiles: every cloud in them is resolved, or refused with Error.

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
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  for (const char* name : {"clouds.yaml", "secure.yaml", "clouds-public.yaml"}) {
    std::size_t end = std::min(rest.find("\n----\n"), rest.size());
    std::ofstream(folder / "openstack" / name, std::ios::binary) << rest.substr(0, end);
    rest.remove_prefix(std::min(end + 6, rest.size()));
    if (rest.empty()) break;
  }
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
