#include "drivers/openstack/legacy_metadata.h"

#include <boost/json/parse.hpp>

#include "driver/statemachine/metadata.h"
#include "drivers/openstack/json_fields.h"

namespace nodepool::drivers::openstack {

namespace {

constexpr const char* kOldItem = "nodepool";

}  // namespace

bool HasOnlyOldOwner(const std::map<std::string, std::string>& metadata) {
  return metadata.contains(kOldItem) && !metadata.contains(driver::statemachine::kProviderKey);
}

std::map<std::string, std::string> WithTodaysOwner(std::map<std::string, std::string> metadata) {
  if (!HasOnlyOldOwner(metadata)) return metadata;
  boost::system::error_code error;
  boost::json::value owner = boost::json::parse(metadata.at(kOldItem), error);
  if (error || !owner.is_object()) return metadata;
  std::string provider = TextIn(owner.as_object(), "provider_name");
  std::string node = TextIn(owner.as_object(), "node_id");
  if (provider.empty()) return metadata;
  metadata[driver::statemachine::kProviderKey] = provider;
  if (!node.empty()) metadata[driver::statemachine::kNodeKey] = node;
  return metadata;
}

}  // namespace nodepool::drivers::openstack
