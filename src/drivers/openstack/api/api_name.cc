#include "drivers/openstack/api/api_name.h"

#include "base/text.h"

namespace nodepool::drivers::openstack {

std::string ApiName(const std::string& path) {
  std::vector<std::string> parts = Split(path.starts_with('/') ? path.substr(1) : path, '/');
  if (parts.empty()) return "discovery";
  if (parts.back() == "detail" && parts.size() >= 2) return parts[parts.size() - 2] + "_detail";
  std::vector<std::string> names;
  for (std::size_t i = 0; i < parts.size(); i += 2) {
    std::string name = parts[i];
    bool has_id = i + 1 < parts.size();
    if (has_id && name.ends_with('s')) name.pop_back();
    names.push_back(std::move(name));
  }
  return Join(names, "_");
}

}  // namespace nodepool::drivers::openstack
