#include "drivers/openstack/api/catalog.h"

#include <algorithm>
#include <vector>

#include "base/json_fields.h"

namespace nodepool::drivers::openstack {

namespace json = boost::json;

namespace {

// In order of preference.
std::vector<std::string> TypesOf(const CloudConfig& cloud, Service service) {
  const ServiceSettings& settings = cloud.Of(service);
  if (!settings.type.empty()) return {settings.type};
  if (service == Service::kBlockStorage) {
    return {"block-storage", "volumev3", "volumev2", "volume", "block-store"};
  }
  return {std::string(ToString(service))};
}

std::string EndpointOf(const json::object& service, const std::string& interface, const std::string& region) {
  const json::array* endpoints = ArrayIn(service, "endpoints");
  if (endpoints == nullptr) return "";
  for (const json::value& item : *endpoints) {
    if (!item.is_object()) continue;
    const json::object& endpoint = item.as_object();
    std::string place = TextIn(endpoint, "region_id");
    if (place.empty()) place = TextIn(endpoint, "region");
    bool fits = TextIn(endpoint, "interface") == interface && (region.empty() || place == region);
    std::string url = TextIn(endpoint, "url");
    if (fits && !url.empty()) return url;
  }
  return "";
}

}  // namespace

std::optional<std::string> FindEndpoint(const json::array& catalog, const CloudConfig& cloud,
                                        Service service) {
  const ServiceSettings& settings = cloud.Of(service);
  const std::string& region = settings.region.empty() ? cloud.region : settings.region;
  const auto& interfaces = settings.interfaces.empty() ? cloud.interfaces : settings.interfaces;
  for (const std::string& type : TypesOf(cloud, service)) {
    for (const std::string& interface : interfaces) {
      for (const json::value& item : catalog) {
        if (!item.is_object() || TextIn(item.as_object(), "type") != type) continue;
        std::string name = TextIn(item.as_object(), "name");
        if (!settings.name.empty() && !name.empty() && name != settings.name) continue;
        std::string url = EndpointOf(item.as_object(), interface, region);
        if (!url.empty()) return url;
      }
    }
  }
  return std::nullopt;
}

}  // namespace nodepool::drivers::openstack
