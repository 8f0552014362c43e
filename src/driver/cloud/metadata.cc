#include "driver/cloud/metadata.h"

#include <algorithm>
#include <boost/json/serialize.hpp>

namespace nodepool::driver::cloud {

Owner OwnerOf(const std::map<std::string, std::string>& metadata) {
  Owner owner;
  for (const auto& [key, value] : metadata) {
    if (value.empty()) continue;
    if (key == kProviderKey) owner.provider = value;
    if (key == kNodeKey) owner.node = NodeId(value);
    if (key == kBuildKey) owner.build = BuildId(value);
    if (key == kUploadKey) owner.upload = UploadId(value);
    if (key == kAttemptKey) owner.attempt = value;
  }
  return owner;
}

std::map<std::string, std::string> MetadataOf(const NodeId& node, const PoolName& pool,
                                              const ProviderName& provider) {
  return {{kNodeKey, node.str()}, {kPoolKey, pool.str()}, {kProviderKey, provider.str()}};
}

bool Names(const boost::json::value& external_id, const std::string& resource_id) {
  if (!external_id.is_object()) return external_id == boost::json::value(resource_id);
  return std::ranges::any_of(external_id.as_object(), [&resource_id](const auto& entry) {
    return entry.value() == boost::json::value(resource_id);
  });
}

std::string ToText(const boost::json::value& external_id) {
  if (external_id.is_null()) return "";
  if (external_id.is_string()) return std::string(external_id.as_string());
  return boost::json::serialize(external_id);
}

}  // namespace nodepool::driver::cloud
