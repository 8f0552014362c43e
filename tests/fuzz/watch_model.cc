#include "watch_model.h"

namespace nodepool::zk {
namespace {

using Kind = WatchModel::Kind;

bool IsAtOrBelow(const std::string& path, const std::string& top) {
  return path == top || top == "/" || path.starts_with(top + "/");
}

bool IsOnce(Kind kind) { return kind == Kind::kData || kind == Kind::kChildren; }

bool Fires(Kind kind, const std::string& watched, EventType type, const std::string& path) {
  switch (kind) {
    case Kind::kData:
      return watched == path && type != EventType::kChildren;
    case Kind::kChildren:
      return watched == path && (type == EventType::kChildren || type == EventType::kDeleted);
    case Kind::kPersistent:
      return watched == path;
    case Kind::kRecursive:
      return IsAtOrBelow(path, watched) && type != EventType::kChildren;
  }
  return false;
}

}  // namespace

bool WatchModel::Remove(std::int64_t connection, int kind, const std::string& path) {
  bool is_found = watches_.erase({connection, Kind::kPersistent, path}) > 0;
  is_found = watches_.erase({connection, Kind::kRecursive, path}) > 0 || is_found;
  if (kind != 1) is_found = watches_.erase({connection, Kind::kData, path}) > 0 || is_found;
  if (kind != 2) is_found = watches_.erase({connection, Kind::kChildren, path}) > 0 || is_found;
  return is_found;
}

void WatchModel::RemoveAll(std::int64_t connection) {
  std::erase_if(watches_, [&](const auto& watch) { return std::get<0>(watch) == connection; });
}

std::vector<WatchModel::Told> WatchModel::TellOf(EventType type, const std::string& path) {
  std::set<std::int64_t> connections;
  std::erase_if(watches_, [&](const auto& watch) {
    const auto& [connection, kind, watched] = watch;
    if (!Fires(kind, watched, type, path)) return false;
    connections.insert(connection);
    return IsOnce(kind);
  });
  std::vector<Told> told;
  for (std::int64_t connection : connections) told.push_back({connection, type, path});
  return told;
}

}  // namespace nodepool::zk
