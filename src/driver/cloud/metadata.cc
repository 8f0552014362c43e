#include "driver/cloud/metadata.h"

namespace nodepool::driver::cloud {

Owner OwnerOf(const std::map<std::string, std::string>& metadata) {
  Owner owner;
  for (const auto& [key, value] : metadata) {
    if (value.empty()) continue;
    if (key == kProviderKey) owner.provider = value;
    if (key == kNodeKey) owner.node = NodeId(value);
    if (key == kBuildKey) owner.build = BuildId(value);
    if (key == kUploadKey) owner.upload = UploadId(value);
  }
  return owner;
}

std::map<std::string, std::string> MetadataOf(const NodeId& node, const PoolName& pool,
                                              const ProviderName& provider) {
  return {{kNodeKey, node.str()}, {kPoolKey, pool.str()}, {kProviderKey, provider.str()}};
}

}  // namespace nodepool::driver::cloud
