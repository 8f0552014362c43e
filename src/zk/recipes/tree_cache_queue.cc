// The queue of a tree cache: what is to be reported, in order.
#include <algorithm>
#include <functional>
#include <utility>

#include "zk/recipes/tree_cache_impl.h"

namespace nodepool::zk {
namespace {

// Messages in flight at a time.
constexpr int kMaxMessages = 8;

}  // namespace

// `target`: of the own write that will show the change, else empty.
void TreeCache::Impl::Read(const std::string& path, bool is_walk, std::string target) {
  Reads& of_path = reads[path];
  if (of_path.unsent) {
    if (is_walk && !std::exchange(of_path.unsent->is_walk, true)) ++walk_jobs;
    return;
  }
  auto item = std::make_shared<Item>(Item{Item::Kind::kData, path, ++last_number, false, is_walk});
  if (is_walk) ++walk_jobs;
  ++of_path.count;
  of_path.unsent = item;
  line.push_back(item);
  if (target.empty()) {
    Enqueue(Job{item, {}});
  } else {
    awaited.push_back({std::move(target), std::move(item)});
  }
}

void TreeCache::Impl::Push(Item::Kind kind, const std::string& path) {
  line.push_back(std::make_shared<Item>(Item{kind, path, ++last_number, true}));
}

void TreeCache::Impl::Enqueue(Job job) {
  jobs.push_back(std::move(job));
  if (askers >= kMaxMessages) return;
  ++askers;
  tasks.Spawn("read the tree below " + root, Ask());
}

void TreeCache::Impl::EndWalkJob() {
  if (--walk_jobs > 0) return;
  is_walking = false;
  decided.clear();
  Push(Item::Kind::kEndOfWalk, root);
}

void TreeCache::Impl::Settle(Item& item) {
  item.is_settled = true;
  if (!item.is_walk) return;
  bool has_children = item.answer && item.answer->stat.num_children > 0;
  if (has_children) {
    ++walk_jobs;
    Enqueue(Job{nullptr, item.path});
  }
  EndWalkJob();
}

void TreeCache::Impl::DeliverSettled() {
  if (line.empty()) return;
  while (!line.empty() && line.front()->is_settled) {
    ItemPtr item = std::move(line.front());
    line.pop_front();
    switch (item->kind) {
      case Item::Kind::kData:
        DeliverData(*item);
        break;
      case Item::Kind::kPresent:
        DeliverPresent(item->path);
        break;
      case Item::Kind::kGone:
        DeliverGone(item->path);
        break;
      case Item::Kind::kEndOfWalk:
        DeliverEndOfWalk();
        break;
    }
  }
  reported.Reach(line.empty() ? last_number : line.front()->number - 1);
}

void TreeCache::Impl::DeliverData(Item& item) {
  auto of_path = reads.find(item.path);
  bool is_overtaken = item.number < of_path->second.valid_from;
  if (--of_path->second.count == 0) reads.erase(of_path);
  if (is_overtaken) return;
  if (!item.answer) return DeliverGone(item.path);
  std::int64_t mzxid = item.answer->stat.mzxid;
  std::string below = BelowRoot(item.path);
  auto entry = known.find(below);
  bool is_known = entry != known.end() && entry->second.Covers(mzxid, round);
  if (!is_known) listener.OnNode(item.path, *item.answer);
  known.insert_or_assign(std::move(below), Known{is_known ? entry->second.mzxid : mzxid, round});
}

void TreeCache::Impl::DeliverPresent(const std::string& path) {
  std::string below = BelowRoot(path);
  auto entry = known.find(below);
  bool is_known = entry != known.end();
  if (!is_known) listener.OnNode(path, NodeData());
  known.insert_or_assign(std::move(below), Known{is_known ? entry->second.mzxid : 0, round});
}

void TreeCache::Impl::DeliverGone(const std::string& path) {
  std::string below = BelowRoot(path);
  if (known.contains(below)) listener.OnGone(path);
  known.erase(below);
}

void TreeCache::Impl::DeliverEndOfWalk() {
  std::vector<std::string> vanished;
  for (const auto& [below, entry] : known) {
    if (entry.round != round) vanished.push_back(ChildPath(root, below));
  }
  // Children before their parents, as the servers delete.
  std::ranges::sort(vanished, std::greater<>());
  for (const std::string& path : vanished) DeliverGone(path);
  was_synced = true;
  synced.Set();
  listener.OnSynced();
}

}  // namespace nodepool::zk
