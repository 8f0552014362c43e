#include "zk/tree/server_watches.h"

#include <algorithm>
#include <array>

#include "zk/client.h"

namespace nodepool::zk {

void ServerWatches::Index::Add(const std::string& path, ConnectionId connection_id) {
  Own& own = by_connection_[connection_id];
  if (!own.paths.insert(path).second) return;
  own.bytes += ServerWatches::BytesOf(path);
  bytes_ += ServerWatches::BytesOf(path);
  by_path_[path].insert(connection_id);
  ++size_;
}

bool ServerWatches::Index::Remove(const std::string& path, ConnectionId connection_id) {
  auto own = by_connection_.find(connection_id);
  if (own == by_connection_.end() || own->second.paths.erase(path) == 0) return false;
  own->second.bytes -= ServerWatches::BytesOf(path);
  bytes_ -= ServerWatches::BytesOf(path);
  if (own->second.paths.empty()) by_connection_.erase(own);
  RemoveFromPath(path, connection_id);
  --size_;
  return true;
}

void ServerWatches::Index::RemoveFromPath(const std::string& path, ConnectionId connection_id) {
  auto at = by_path_.find(path);
  if (at == by_path_.end()) return;
  at->second.erase(connection_id);
  if (at->second.empty()) by_path_.erase(at);
}

void ServerWatches::Index::RemoveAll(ConnectionId connection_id) {
  auto own = by_connection_.find(connection_id);
  if (own == by_connection_.end()) return;
  size_ -= own->second.paths.size();
  ended_.emplace(connection_id, std::move(own->second.paths));
  by_connection_.erase(own);
}

void ServerWatches::Index::Free(std::size_t& count) {
  while (count > 0 && !ended_.empty()) {
    auto& [connection_id, paths] = *ended_.begin();
    for (; count > 0 && !paths.empty(); --count) {
      bytes_ -= ServerWatches::BytesOf(*paths.begin());
      RemoveFromPath(*paths.begin(), connection_id);
      paths.erase(paths.begin());
    }
    if (paths.empty()) ended_.erase(ended_.begin());
  }
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
  if (at == by_path_.end()) return;
  for (ConnectionId connection_id : at->second) {
    if (!ended_.contains(connection_id)) to.insert(connection_id);
  }
}

void ServerWatches::Index::Take(const std::string& path, std::set<ConnectionId>& to) {
  auto at = by_path_.find(path);
  if (at == by_path_.end()) return;
  std::set<ConnectionId> connection_ids = at->second;
  for (ConnectionId connection_id : connection_ids) {
    if (Remove(path, connection_id)) to.insert(connection_id);
  }
}

void ServerWatches::AddStaying(const std::string& path, WatchMode mode, ConnectionId connection_id) {
  (mode == WatchMode::kPersistentRecursive ? recursive_ : persistent_).Add(path, connection_id);
}

void ServerWatches::RemoveAll(ConnectionId connection_id) {
  for (Index* index : {&data_, &children_, &persistent_, &recursive_}) index->RemoveAll(connection_id);
}

bool ServerWatches::Free(std::size_t count) {
  std::array<Index*, 4> indexes{&data_, &children_, &persistent_, &recursive_};
  for (Index* index : indexes) index->Free(count);
  return std::ranges::any_of(indexes, &Index::has_ended);
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
  // As with ZooKeeper, these report nothing of what was missed: their owners read again.
  for (const std::string& path : paths.persistent) persistent_.Add(path, connection_id);
  for (const std::string& path : paths.recursive) recursive_.Add(path, connection_id);
  return missed;
}

std::size_t ServerWatches::size() const {
  return data_.size() + children_.size() + persistent_.size() + recursive_.size();
}

std::size_t ServerWatches::bytes() const {
  return data_.bytes() + children_.bytes() + persistent_.bytes() + recursive_.bytes();
}

}  // namespace nodepool::zk
