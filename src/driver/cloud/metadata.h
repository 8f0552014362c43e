#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/ids.h"

namespace nodepool::driver::cloud {

// What we write on everything made in a cloud, to know it again (drivers.md 5.4, 5.10).
inline constexpr const char* kProviderKey = "nodepool_provider_name";
inline constexpr const char* kPoolKey = "nodepool_pool_name";
inline constexpr const char* kNodeKey = "nodepool_node_id";
inline constexpr const char* kBuildKey = "nodepool_build_id";
inline constexpr const char* kUploadKey = "nodepool_upload_id";

// Whose a resource is, by its metadata.
struct Owner {
  std::string provider;  // empty: not made by any Nodepool
  std::optional<NodeId> node;
  std::optional<BuildId> build;
  std::optional<UploadId> upload;
};

Owner OwnerOf(const std::map<std::string, std::string>& metadata);

std::map<std::string, std::string> MetadataOf(const NodeId& node, const PoolName& pool,
                                              const ProviderName& provider);

}  // namespace nodepool::driver::cloud
