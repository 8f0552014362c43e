#include "drivers/openstack/api/legacy_metadata.h"

#include <boost/json/parse.hpp>
#include <optional>

#include "base/json_fields.h"
#include "driver/cloud/metadata.h"

namespace nodepool::drivers::openstack {

namespace {

constexpr const char* kOldItem = "nodepool";
constexpr std::size_t kNodeIdDigits = 10;

// None: it is no JSON object.
std::optional<boost::json::object> OldOwner(const std::map<std::string, std::string>& metadata) {
  boost::system::error_code error;
  boost::json::value owner = boost::json::parse(metadata.at(kOldItem), error);
  if (error || !owner.is_object()) return std::nullopt;
  return owner.as_object();
}

}  // namespace

bool HasOnlyOldOwner(const std::map<std::string, std::string>& metadata) {
  return metadata.contains(kOldItem) && !metadata.contains(driver::cloud::kProviderKey);
}

std::map<std::string, std::string> WithTodaysOwner(std::map<std::string, std::string> metadata) {
  if (!HasOnlyOldOwner(metadata)) return metadata;
  std::optional<boost::json::object> owner = OldOwner(metadata);
  if (!owner) return metadata;
  std::string provider = TextIn(*owner, "provider_name");
  std::string node = TextIn(*owner, "node_id");
  if (provider.empty()) return metadata;
  metadata[driver::cloud::kProviderKey] = provider;
  if (!node.empty()) metadata[driver::cloud::kNodeKey] = node;
  return metadata;
}

bool HasUnreadableOwner(const std::map<std::string, std::string>& metadata) {
  return HasOnlyOldOwner(metadata) && !OldOwner(metadata);
}

std::map<std::string, std::string> WithWholeNodeId(std::map<std::string, std::string> metadata) {
  auto node = metadata.find(driver::cloud::kNodeKey);
  if (node == metadata.end()) return metadata;
  std::string& id = node->second;
  bool is_number = !id.empty() && id.find_first_not_of("0123456789") == std::string::npos;
  if (is_number && id.size() < kNodeIdDigits) id.insert(0, kNodeIdDigits - id.size(), '0');
  return metadata;
}

}  // namespace nodepool::drivers::openstack
