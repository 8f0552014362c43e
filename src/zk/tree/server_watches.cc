#include "zk/tree/server_watches.h"

#include "zk/client.h"

namespace nodepool::zk {

void ServerWatches::Index::Add(const std::string& path, ConnectionId holder) {
  by_path_[path].insert(holder);
  Own& own = by_holder_[holder];
  if (own.paths.insert(path).second) own.bytes += path.size();
}

bool ServerWatches::Index::Remove(const std::string& path, ConnectionId holder) {
  auto at = by_path_.find(path);
  if (at == by_path_.end() || at->second.erase(holder) == 0) return false;
  if (at->second.empty()) by_path_.erase(at);
  auto own = by_holder_.find(holder);
  own->second.bytes -= path.size();
  own->second.paths.erase(path);
  if (own->second.paths.empty()) by_holder_.erase(own);
  return true;
}

void ServerWatches::Index::RemoveAll(ConnectionId holder) {
  auto own = by_holder_.find(holder);
  if (own == by_holder_.end()) return;
  std::set<std::string> paths = own->second.paths;
  for (const std::string& path : paths) Remove(path, holder);
}

bool ServerWatches::Index::Has(const std::string& path, ConnectionId holder) const {
  auto own = by_holder_.find(holder);
  return own != by_holder_.end() && own->second.paths.contains(path);
}

std::size_t ServerWatches::Index::BytesOf(ConnectionId holder) const {
  auto own = by_holder_.find(holder);
  return own == by_holder_.end() ? 0 : own->second.bytes;
}

void ServerWatches::Index::Collect(std::string_view path, std::set<ConnectionId>& to) const {
  auto at = by_path_.find(path);
  if (at != by_path_.end()) to.insert(at->second.begin(), at->second.end());
}

void ServerWatches::Index::Take(const std::string& path, std::set<ConnectionId>& to) {
  auto at = by_path_.find(path);
  if (at == by_path_.end()) return;
  std::set<ConnectionId> holders = at->second;
  for (ConnectionId holder : holders) Remove(path, holder);
  to.insert(holders.begin(), holders.end());
}

std::size_t ServerWatches::Index::size() const {
  std::size_t total = 0;
  for (const auto& [path, holders] : by_path_) total += holders.size();
  return total;
}

void ServerWatches::AddStaying(const std::string& path, WatchMode mode, ConnectionId holder) {
  (mode == WatchMode::kPersistentRecursive ? recursive_ : persistent_).Add(path, holder);
}

bool ServerWatches::RemoveStaying(const std::string& path, WatchMode mode, ConnectionId holder) {
  return (mode == WatchMode::kPersistentRecursive ? recursive_ : persistent_).Remove(path, holder);
}

void ServerWatches::RemoveAll(ConnectionId holder) {
  for (Index* index : {&data_, &children_, &persistent_, &recursive_}) index->RemoveAll(holder);
}

bool ServerWatches::Has(const std::string& path, ConnectionId holder, bool data, bool children) const {
  return (data && data_.Has(path, holder)) || (children && children_.Has(path, holder)) ||
         persistent_.Has(path, holder) || recursive_.Has(path, holder);
}

bool ServerWatches::Remove(const std::string& path, ConnectionId holder, bool data, bool children) {
  bool is_found = Has(path, holder, data, children);
  if (data) data_.Remove(path, holder);
  if (children) children_.Remove(path, holder);
  persistent_.Remove(path, holder);
  recursive_.Remove(path, holder);
  return is_found;
}

std::size_t ServerWatches::BytesOf(ConnectionId holder) const {
  return data_.BytesOf(holder) + children_.BytesOf(holder) + persistent_.BytesOf(holder) +
         recursive_.BytesOf(holder);
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
  std::set<ConnectionId> holders;
  data_.Take(change.path, holders);
  if (change.type == EventType::kDeleted) children_.Take(change.path, holders);
  persistent_.Collect(change.path, holders);
  CollectRecursive(change.path, holders);
  for (ConnectionId holder : holders) deliveries.push_back(Delivery{holder, change});
  if (change.type == EventType::kDataChanged) return deliveries;

  WatchEvent of_parent{EventType::kChildren, ParentPath(change.path), change.zxid};
  holders.clear();
  children_.Take(of_parent.path, holders);
  persistent_.Collect(of_parent.path, holders);
  for (ConnectionId holder : holders) deliveries.push_back(Delivery{holder, of_parent});
  return deliveries;
}

std::vector<WatchEvent> ServerWatches::Restore(const DataTree& tree, ConnectionId holder,
                                               std::int64_t seen_zxid, const protocol::WatchPaths& paths) {
  std::vector<WatchEvent> missed;
  for (const std::string& path : paths.data) {
    Result<Stat> stat = tree.Exists(path);
    if (!stat) {
      missed.push_back(WatchEvent{EventType::kDeleted, path});
    } else if (stat->mzxid > seen_zxid) {
      missed.push_back(WatchEvent{EventType::kDataChanged, path});
    } else {
      data_.Add(path, holder);
    }
  }
  for (const std::string& path : paths.exist) {
    if (tree.Exists(path)) {
      missed.push_back(WatchEvent{EventType::kCreated, path});
    } else {
      data_.Add(path, holder);
    }
  }
  for (const std::string& path : paths.child) {
    Result<Stat> stat = tree.Exists(path);
    if (!stat) {
      missed.push_back(WatchEvent{EventType::kDeleted, path});
    } else if (stat->pzxid > seen_zxid) {
      missed.push_back(WatchEvent{EventType::kChildren, path});
    } else {
      children_.Add(path, holder);
    }
  }
  for (const std::string& path : paths.persistent) persistent_.Add(path, holder);
  for (const std::string& path : paths.recursive) recursive_.Add(path, holder);
  return missed;
}

std::size_t ServerWatches::size() const {
  return data_.size() + children_.size() + persistent_.size() + recursive_.size();
}

}  // namespace nodepool::zk
