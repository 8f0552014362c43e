#include "zk/wire/wire_watches.h"

#include <algorithm>
#include <iterator>

namespace nodepool::zk {

void WatchTable::AddOneShot(OneShotKind kind, std::string path, Watcher watcher) {
  one_shots(kind)[std::move(path)].push_back(std::move(watcher));
}

Subscription WatchTable::AddLasting(WatchMode mode, std::string path, Watcher watcher) {
  auto entry = std::make_shared<Entry>(Entry{std::move(watcher)});
  lasting(mode)[path].push_back(entry);
  return Subscription([weak = weak_from_this(), mode, path = std::move(path), entry] {
    entry->is_active = false;  // not called again, even by a dispatch that is under way
    auto table = weak.lock();
    if (!table) return;
    auto& watches = table->lasting(mode);
    auto found = watches.find(path);
    found->second.remove(entry);
    if (found->second.empty()) watches.erase(found);
  });
}

void WatchTable::Dispatch(const WatchEvent& event) {
  std::vector<Watcher> told;
  switch (event.type) {
    case EventType::kNone:
      return;
    case EventType::kCreated:
    case EventType::kDataChanged:
      Take(data_, event.path, told);
      Take(exist_, event.path, told);
      break;
    case EventType::kDeleted:
      Take(data_, event.path, told);
      Take(exist_, event.path, told);
      Take(child_, event.path, told);
      break;
    case EventType::kChildren:
      Take(child_, event.path, told);
      break;
  }
  auto self = shared_from_this();
  for (Watcher& watcher : told) watcher(event);
  NotifyLasting(persistent_, event.path, event);
  // A recursive watch covers the children's own events instead of this one.
  if (event.type != EventType::kChildren) NotifyAncestors(event);
}

void WatchTable::DropOneShots() {
  std::vector<Watcher> told;
  for (OneShots* watches : {&data_, &exist_, &child_}) {
    for (auto& [path, watchers] : *watches)
      std::move(watchers.begin(), watchers.end(), std::back_inserter(told));
    watches->clear();
  }
  auto self = shared_from_this();
  for (Watcher& watcher : told) watcher(WatchEvent{});
}

protocol::WatchPaths WatchTable::Paths() const {
  auto keys = [](const auto& watches) {
    std::vector<std::string> paths;
    paths.reserve(watches.size());
    for (const auto& [path, watchers] : watches) paths.push_back(path);
    return paths;
  };
  return {keys(data_), keys(exist_), keys(child_), keys(persistent_), keys(recursive_)};
}

void WatchTable::Take(OneShots& from, const std::string& path, std::vector<Watcher>& into) {
  auto found = from.find(path);
  if (found == from.end()) return;
  std::move(found->second.begin(), found->second.end(), std::back_inserter(into));
  from.erase(found);
}

void WatchTable::NotifyLasting(const Lasting& watches, const std::string& path, const WatchEvent& event) {
  auto found = watches.find(path);
  if (found == watches.end()) return;
  auto told = found->second;
  for (const auto& entry : told) {
    if (entry->is_active) entry->watcher(event);
  }
}

void WatchTable::NotifyAncestors(const WatchEvent& event) {
  if (recursive_.empty()) return;
  std::string path = event.path;
  while (true) {
    NotifyLasting(recursive_, path, event);
    if (path.size() <= 1) return;
    path.resize(std::max<std::size_t>(path.rfind('/'), 1));
  }
}

WatchTable::OneShots& WatchTable::one_shots(OneShotKind kind) {
  switch (kind) {
    case OneShotKind::kData:
      return data_;
    case OneShotKind::kExist:
      return exist_;
    case OneShotKind::kChild:
      return child_;
  }
  return data_;
}

}  // namespace nodepool::zk
