#pragma once

#include <boost/json/value.hpp>
#include <map>
#include <optional>
#include <string>

#include "base/ids.h"

namespace nodepool::driver::cloud {

// The metadata of everything that Nodepool makes in a cloud, by which it is recognised
// (drivers.md 5.4, 5.10).
inline constexpr const char* kProviderKey = "nodepool_provider_name";
inline constexpr const char* kPoolKey = "nodepool_pool_name";
inline constexpr const char* kNodeKey = "nodepool_node_id";
inline constexpr const char* kBuildKey = "nodepool_build_id";
inline constexpr const char* kUploadKey = "nodepool_upload_id";
// CreateParameters::attempt_mark, of drivers that recognise by it what they made; the others add no metadata.
inline constexpr const char* kAttemptKey = "nodepool_attempt";

// The owner of a resource, according to its metadata.
struct Owner {
  std::string provider;  // empty: not made by any Nodepool
  std::optional<NodeId> node;
  std::optional<BuildId> build;
  std::optional<UploadId> upload;
  std::string attempt;  // kAttemptKey; empty: none
};

// Reads what MetadataOf wrote; what cannot be read counts as absent.
Owner OwnerOf(const std::map<std::string, std::string>& metadata);

// The metadata of a node's machine.
std::map<std::string, std::string> MetadataOf(const NodeId& node, const PoolName& pool,
                                              const ProviderName& provider);

// Whether a machine's external id names the resource: it is the resource's id or an object with that id among
// its texts.
bool Names(const boost::json::value& external_id, const std::string& resource_id);

// An external id in readable form: text as is, an object as JSON.
std::string ToText(const boost::json::value& external_id);

}  // namespace nodepool::driver::cloud
