#pragma once

#include <boost/json/value.hpp>
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

// Whether a machine's external id names the resource: it is its id or, if it is an object, one of the
// texts in it is.
bool Names(const boost::json::value& external_id, const std::string& resource_id);

// An external id for people: text as it is, an object as JSON.
std::string ToText(const boost::json::value& external_id);

}  // namespace nodepool::driver::cloud
