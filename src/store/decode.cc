#include "store/decode.h"

namespace nodepool::store {

Revision RevisionOf(const zk::Stat& stat) {
  Revision revision;
  revision.version = stat.version;
  revision.mzxid = stat.mzxid;
  revision.created = WallTime(std::chrono::milliseconds(stat.ctime));
  revision.modified = WallTime(std::chrono::milliseconds(stat.mtime));
  revision.ephemeral_owner = stat.ephemeral_owner;
  return revision;
}

std::optional<NodeId> RecordKind<StoredNode>::IdIn(std::string_view path) {
  paths::BelowNodes place = paths::ParseBelowNodes(path);
  return place.part == paths::BelowNodes::Part::kRecord ? std::optional(place.id) : std::nullopt;
}

std::optional<std::string> RecordKind<Component>::IdIn(std::string_view path) {
  if (!paths::ParseComponent(path)) return std::nullopt;
  return paths::Below(kRoot, path);
}

Expected<Component> RecordKind<Component>::Parse(const std::string& id, const std::string& data, WallTime) {
  std::optional<ComponentKind> kind = paths::ParseComponent(fmt::format("{}/{}", kRoot, id));
  if (!kind) return Unexpected(Verdict::kInvalid, "a component of an unknown kind");
  return ParseComponent(*kind, data);
}

}  // namespace nodepool::store
