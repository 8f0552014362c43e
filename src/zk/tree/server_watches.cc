#include "zk/tree/server_watches.h"

#include "zk/client.h"

namespace nodepool::zk {

void ServerWatches::Index::Add(const std::string& path, ConnectionId connection_id) {
  by_path_[path].insert(connection_id);
  Own& own = by_connection_[connection_id];
  if (own.paths.insert(path).second) own.bytes += path.size();
}

bool ServerWatches::Index::Remove(const std::string& path, ConnectionId connection_id) {
  auto at = by_path_.find(path);
  if (at == by_path_.end() || at->second.erase(connection_id) == 0) return false;
  if (at->second.empty()) by_path_.erase(at);
  auto own = by_connection_.find(connection_id);
  own->second.bytes -= path.size();
  own->second.paths.erase(path);
  if (own->second.paths.empty()) by_connection_.erase(own);
  return true;
}

void ServerWatches::Index::RemoveAll(ConnectionId connection_id) {
  auto own = by_connection_.find(connection_id);
  if (own == by_connection_.end()) return;
  std::set<std::string> paths = own->second.paths;
  for (const std::string& path : paths) Remove(path, connection_id);
}

bool ServerWatches::Index::Has(const std::string& path, ConnectionId connection_id) const {
  auto own = by_connection_.find(connection_id);
  return own != by_connection_.end() && own->second.paths.contains(path);
}

std::size_t ServerWatches::Index::BytesOf(ConnectionId connection_id) const {
  auto own = by_connection_.find(connection_id);
  return own == by_connection_.end() ? 0 : own->second.bytes;
}

void ServerWatches::Index::Collect(std::string_view path, std::set<ConnectionId>& to) const {
  auto at = by_path_.find(path);
  if (at != by_path_.end()) to.insert(at->second.begin(), at->second.end());
}

void ServerWatches::Index::Take(const std::string& path, std::set<ConnectionId>& to) {
  auto at = by_path_.find(path);
  if (at == by_path_.end()) return;
  std::set<ConnectionId> connection_ids = at->second;
  for (ConnectionId connection_id : connection_ids) Remove(path, connection_id);
  to.insert(connection_ids.begin(), connection_ids.end());
}

std::size_t ServerWatches::Index::size() const {
  std::size_t total = 0;
  for (const auto& [path, connection_ids] : by_path_) total += connection_ids.size();
  return total;
}

void ServerWatches::AddStaying(const std::string& path, WatchMode mode, ConnectionId connection_id) {
  (mode == WatchMode::kPersistentRecursive ? recursive_ : persistent_).Add(path, connection_id);
}

bool ServerWatches::RemoveStaying(const std::string& path, WatchMode mode, ConnectionId connection_id) {
  return (mode == WatchMode::kPersistentRecursive ? recursive_ : persistent_).Remove(path, connection_id);
}

void ServerWatches::RemoveAll(ConnectionId connection_id) {
  for (Index* index : {&data_, &children_, &persistent_, &recursive_}) index->RemoveAll(connection_id);
}

bool ServerWatches::Has(const std::string& path, ConnectionId connection_id, bool data, bool children) const {
  return (data && data_.Has(path, connection_id)) || (children && children_.Has(path, connection_id)) ||
         persistent_.Has(path, connection_id) || recursive_.Has(path, connection_id);
}

bool ServerWatches::Remove(const std::string& path, ConnectionId connection_id, bool data, bool children) {
  bool is_found = Has(path, connection_id, data, children);
  if (data) data_.Remove(path, connection_id);
  if (children) children_.Remove(path, connection_id);
  persistent_.Remove(path, connection_id);
  recursive_.Remove(path, connection_id);
  return is_found;
}

std::size_t ServerWatches::BytesOf(ConnectionId connection_id) const {
  return data_.BytesOf(connection_id) + children_.BytesOf(connection_id) +
         persistent_.BytesOf(connection_id) + recursive_.BytesOf(connection_id);
}

void ServerWatches::CollectRecursive(std::string_view path, std::set<ConnectionId>& to) const {
  if (recursive_.empty()) return;
  while (path.size() > 1) {
    recursive_.Collect(path, to);
    path = path.substr(0, path.rfind('/'));
  }
  recursive_.Collect("/", to);
}

std::vector<ServerWatches::Delivery> ServerWatches::Trigger(const WatchEvent& change) {
  std::vector<Delivery> deliveries;
  std::set<ConnectionId> connection_ids;
  data_.Take(change.path, connection_ids);
  if (change.type == EventType::kDeleted) children_.Take(change.path, connection_ids);
  persistent_.Collect(change.path, connection_ids);
  CollectRecursive(change.path, connection_ids);
  for (ConnectionId connection_id : connection_ids) deliveries.push_back(Delivery{connection_id, change});
  if (change.type == EventType::kDataChanged) return deliveries;

  WatchEvent of_parent{EventType::kChildren, ParentPath(change.path), change.zxid};
  connection_ids.clear();
  children_.Take(of_parent.path, connection_ids);
  persistent_.Collect(of_parent.path, connection_ids);
  for (ConnectionId connection_id : connection_ids) deliveries.push_back(Delivery{connection_id, of_parent});
  return deliveries;
}

std::vector<WatchEvent> ServerWatches::Restore(const DataTree& tree, ConnectionId connection_id,
                                               std::int64_t seen_zxid, const protocol::WatchPaths& paths) {
  std::vector<WatchEvent> missed;
  for (const std::string& path : paths.data) {
    Result<Stat> stat = tree.Exists(path);
    if (!stat) {
      missed.push_back(WatchEvent{EventType::kDeleted, path});
    } else if (stat->mzxid > seen_zxid) {
      missed.push_back(WatchEvent{EventType::kDataChanged, path});
    } else {
      data_.Add(path, connection_id);
    }
  }
  for (const std::string& path : paths.exist) {
    if (tree.Exists(path)) {
      missed.push_back(WatchEvent{EventType::kCreated, path});
    } else {
      data_.Add(path, connection_id);
    }
  }
  for (const std::string& path : paths.child) {
    Result<Stat> stat = tree.Exists(path);
    if (!stat) {
      missed.push_back(WatchEvent{EventType::kDeleted, path});
    } else if (stat->pzxid > seen_zxid) {
      missed.push_back(WatchEvent{EventType::kChildren, path});
    } else {
      children_.Add(path, connection_id);
    }
  }
  for (const std::string& path : paths.persistent) persistent_.Add(path, connection_id);
  for (const std::string& path : paths.recursive) recursive_.Add(path, connection_id);
  return missed;
}

std::size_t ServerWatches::size() const {
  return data_.size() + children_.size() + persistent_.size() + recursive_.size();
}

}  // namespace nodepool::zk
