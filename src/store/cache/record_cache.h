#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log/logging.h"
#include "base/subscription.h"
#include "base/text.h"
#include "store/record_kinds.h"
#include "store/tree.h"
#include "zk/recipes/tree_cache.h"
#include "zk/znode.h"

namespace nodepool::store {

// Whether the text of a record may matter; not set: every record matters.
using IsWanted = std::function<bool(std::string_view text)>;

// Reads everything below `root` once and reports it to `listener`, by path on each level, parents before what
// is below them, without following changes: what changes meanwhile is reported before or after the change. Of
// records that are not wanted nothing is reported, and nothing below them is read. A root that does not exist
// has nothing below it. Reads are repeated after connection losses; kLostSession ends it. `listener` gets no
// OnGone() and no OnSynced().
Task<> ReadOnce(Tree& tree, std::string root, zk::TreeCache::Listener& listener, IsWanted is_wanted);

// The records of one kind, by id. Only the cache that owns the map changes it.
template <class Stored>
class RecordMap {
 public:
  using Id = typename RecordKind<Stored>::Id;
  // `before` or `after` is null for a record that appeared or vanished. Called after the indexes are up to
  // date, on the loop's thread; the pointers are valid during the call.
  using Listener = std::function<void(const Id&, const Stored* before, const Stored* after)>;

  // What is kept up to date with the records.
  struct Follower {
    virtual void Add(const Id& id, const Stored& stored) = 0;
    virtual void Remove(const Id& id, const Stored& stored) = 0;

   protected:
    ~Follower() = default;
  };

  RecordMap() = default;
  RecordMap(const RecordMap&) = delete;
  RecordMap& operator=(const RecordMap&) = delete;

  const std::map<Id, Stored>& all() const { return records_; }
  const Stored* Find(const Id& id) const {
    auto it = records_.find(id);
    return it == records_.end() ? nullptr : &it->second;
  }
  // For changes of what no index is made of.
  Stored* FindToChange(const Id& id) {
    auto it = records_.find(id);
    return it == records_.end() ? nullptr : &it->second;
  }

  Subscription OnChange(Listener listener) const { return listeners_.Add(std::move(listener)); }
  // `follower` lives as long as the map.
  void Follow(Follower& follower) { followers_.push_back(&follower); }

  // nullopt: there is no such record any more, or it cannot be read.
  void Replace(const Id& id, std::optional<Stored> after) {
    auto before = records_.extract(id);
    if (before) {
      for (Follower* follower : followers_) follower->Remove(id, before.mapped());
    }
    const Stored* now = nullptr;
    if (after) {
      now = &records_.emplace(id, std::move(*after)).first->second;
      for (Follower* follower : followers_) follower->Add(id, *now);
    }
    if (before || now != nullptr) Notify(id, before ? &before.mapped() : nullptr, now);
  }
  void Notify(const Id& id, const Stored* before, const Stored* after) const {
    listeners_.Notify(id, before, after);
  }

 private:
  std::map<Id, Stored> records_;
  std::vector<Follower*> followers_;
  Listeners<const Id&, const Stored*, const Stored*> listeners_;
};

// An entry of an index that only counts.
struct RecordCount {
  std::size_t count = 0;
  void Add(const auto&) { ++count; }
  void Remove(const auto&) { --count; }
  bool empty() const { return count == 0; }
};

// An index of the records of a map, declared behind the map as a member of its cache:
//
//   RecordIndex<StoredRequest, RequestState> by_state_{
//       records_, [](const StoredRequest& request) { return request.record.state; }};
//
// It is made at the first use and kept up to date from then on. An entry is a set of ids, or a struct that
// sums something up: Add() and Remove() take a record and are exact opposites. Entries that are empty() are
// removed.
template <class Stored, class Key, class Entry = std::set<typename RecordKind<Stored>::Id>>
class RecordIndex final : private RecordMap<Stored>::Follower {
 public:
  using Id = typename RecordKind<Stored>::Id;

  // `keys_of` says by which keys a record is found: a Key, a std::optional of one, or a range of them, each
  // once.
  template <class KeysOf>
  RecordIndex(RecordMap<Stored>& records, KeysOf keys_of)
      : records_(records), change_([this, keys_of](const Id& id, const Stored& stored, bool is_there) {
          SeeKeys(keys_of(stored), [&](const Key& key) { ChangeEntry(key, id, stored, is_there); });
        }) {
    records.Follow(*this);
  }
  RecordIndex(const RecordIndex&) = delete;
  RecordIndex& operator=(const RecordIndex&) = delete;

  // The entry of the key, or an empty one.
  const Entry& EntryOf(const Key& key) const { return FindOrEmpty(entries(), key); }
  const std::map<Key, Entry>& entries() const {
    if (!is_made_) {
      is_made_ = true;
      for (const auto& [id, stored] : records_.all()) change_(id, stored, true);
    }
    return entries_;
  }

  // For an index whose keys depend on more than the record: removes it before that changes, and adds it
  // again.
  void Add(const Id& id, const Stored& stored) override {
    if (is_made_) change_(id, stored, true);
  }
  void Remove(const Id& id, const Stored& stored) override {
    if (is_made_) change_(id, stored, false);
  }

 private:
  template <class Keys, class See>
  static void SeeKeys(const Keys& keys, const See& see) {
    if constexpr (std::convertible_to<const Keys&, const Key&>) {
      see(keys);
    } else if constexpr (std::same_as<Keys, std::optional<Key>>) {
      if (keys) see(*keys);
    } else {
      for (const Key& key : keys) see(key);
    }
  }

  void ChangeEntry(const Key& key, const Id& id, const Stored& stored, bool is_there) {
    auto it = entries_.try_emplace(key).first;
    Entry& entry = it->second;
    if constexpr (requires { entry.Add(stored); }) {
      if (is_there) entry.Add(stored);
      if (!is_there) entry.Remove(stored);
    } else {
      if (is_there) entry.insert(id);
      if (!is_there) entry.erase(id);
    }
    if (entry.empty()) entries_.erase(it);
  }

  const RecordMap<Stored>& records_;
  std::function<void(const Id&, const Stored&, bool is_there)> change_;
  mutable bool is_made_ = false;
  mutable std::map<Key, Entry> entries_;
};

class CacheGroup;

// Records that cannot be read: each version is logged and counted once (D-08).
class MalformedRecords {
 public:
  explicit MalformedRecords(log::Logger logger) : logger_(std::move(logger)) {}

  void Report(const std::string& path, const zk::Stat& stat, const std::string& fault) {
    auto [it, is_new] = reported_.try_emplace(path, stat.mzxid);
    if (!is_new && it->second == stat.mzxid) return;
    it->second = stat.mzxid;
    ++count_;
    logger_.Error("The record {} is ignored until it is fixed or deleted: {}", path, fault);
  }
  // The record is readable again, or deleted.
  void Discard(const std::string& path) { reported_.erase(path); }

  bool Contains(const std::string& path) const { return reported_.contains(path); }

  std::uint64_t count() const { return count_; }

 private:
  log::Logger logger_;
  std::map<std::string, std::int64_t> reported_;  // mzxid by path
  std::uint64_t count_ = 0;
};

// A copy of the records below one znode, in memory, fed by one recursive watch. Records that cannot be read
// are reported once per version, counted, and not listed (D-08).
class Cache : private zk::TreeCache::Listener {
 public:
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  // What it has records of, as metrics name it: "node".
  std::string_view kind() const { return kind_; }

  // Until then it is empty. Returns at once; call Stop() before destruction.
  void Start();
  // In place of Start(), for a program that ends with what it shows: reads the records once, those that are
  // wanted, and follows no changes.
  Task<> ReadOnce(Tree& tree, IsWanted is_wanted = nullptr) {
    return store::ReadOnce(tree, root_, *this, std::move(is_wanted));
  }
  Task<> Stop() { return tree_.Stop(); }
  bool is_started() const { return is_started_; }
  // Whether it is complete; false while ZooKeeper is away.
  bool synced() const { return tree_.synced(); }
  Task<> WaitSynced() { return tree_.WaitSynced(); }
  // Ends when the cache shows everything that any client wrote before this was called.
  Task<> CatchUp() { return tree_.CatchUp(); }

  // Calls after each change of a znode that matters to the cache.
  Subscription OnAnyChange(std::function<void()> listener) const {
    return any_change_.Add(std::move(listener));
  }

  // Versions of records that could not be read.
  std::uint64_t malformed_count() const { return malformed_.count(); }

 protected:
  struct Settings {
    std::string_view kind;
    std::string_view root;
    const char* logger = "nodepool.zk.ZooKeeper";
  };
  Cache(Loop& loop, zk::Client& client, Settings settings);
  Cache(CacheGroup& group, Settings settings);  // one that is started and stopped with others

  // As TreeCache::Listener.
  virtual void OnZnode(const std::string& path, const zk::NodeData& node) = 0;
  virtual void OnZnodeGone(const std::string& path) = 0;

  // The record in a znode; nullopt: it cannot be read, which is reported.
  template <class Stored>
  std::optional<Stored> Read(const typename RecordKind<Stored>::Id& id, const std::string& path,
                             const zk::NodeData& node) {
    Expected<Stored> stored = TryDecode<Stored>(id, node, loop_.Now());
    if constexpr (requires { RecordKind<Stored>::FaultOf(id); }) {
      if (const char* fault = RecordKind<Stored>::FaultOf(id)) stored = Unexpected(Verdict::kInvalid, fault);
    }
    if (!stored) {
      malformed_.Report(path, node.stat, stored.error().message());
      return std::nullopt;
    }
    malformed_.Discard(path);
    return std::move(*stored);
  }

  // For the records of one kind or more: what they need to know of a path, that a znode exists, that one is
  // gone. Paths of none of these kinds are ignored.
  template <class... Stored>
  static zk::TreeCache::Interest InterestOf(std::string_view path, const RecordMap<Stored>&...) {
    bool is_of_any = (RecordKind<Stored>::IdIn(path).has_value() || ...);
    return is_of_any ? zk::TreeCache::Interest::kData : zk::TreeCache::Interest::kNone;
  }
  template <class... Stored>
  void Follow(const std::string& path, const zk::NodeData& node, RecordMap<Stored>&... records) {
    (FollowOne(path, node, records), ...);
  }
  template <class... Stored>
  static void Remove(const std::string& path, RecordMap<Stored>&... records) {
    (RemoveOne(path, records), ...);
  }

  MalformedRecords malformed_;

 private:
  void OnNode(const std::string& path, const zk::NodeData& node) final;
  void OnGone(const std::string& path) final;
  void OnSynced() final {}

  template <class Stored>
  void FollowOne(const std::string& path, const zk::NodeData& node, RecordMap<Stored>& records) {
    std::optional<typename RecordKind<Stored>::Id> id = RecordKind<Stored>::IdIn(path);
    if (!id) return;
    std::optional<Stored> stored = Read<Stored>(*id, path, node);
    if constexpr (requires { RecordKind<Stored>::InPlaceOfMalformed(); }) {
      if (!stored) stored = RecordKind<Stored>::InPlaceOfMalformed();
    }
    records.Replace(*id, std::move(stored));
  }
  template <class Stored>
  static void RemoveOne(const std::string& path, RecordMap<Stored>& records) {
    if (std::optional<typename RecordKind<Stored>::Id> id = RecordKind<Stored>::IdIn(path))
      records.Replace(*id, std::nullopt);
  }

  Loop& loop_;
  std::string_view kind_;
  std::string root_;
  bool is_started_ = false;
  Listeners<> any_change_;
  zk::TreeCache tree_;
};

// A cache of the records of one kind. A new kind is its struct, its RecordKind (record_kinds.h) and a line in
// Caches; one that is found by more than its id has a class that declares its indexes, as RequestCache.
template <class Stored>
class RecordCache : public Cache {
 public:
  using Kind = RecordKind<Stored>;
  using Id = typename Kind::Id;
  using Listener = typename RecordMap<Stored>::Listener;

  RecordCache(Loop& loop, zk::Client& client) : Cache(loop, client, SettingsOf()) {}
  explicit RecordCache(CacheGroup& group) : Cache(group, SettingsOf()) {}

  // `before` or `after` is null for a record that appeared or vanished. Called after the indexes are up to
  // date, on the loop's thread; the pointers are valid during the call.
  Subscription OnChange(Listener listener) const { return records_.OnChange(std::move(listener)); }

  const Stored* Find(const Id& id) const { return records_.Find(id); }
  const std::map<Id, Stored>& all() const { return records_.all(); }
  // Whether its record is there, but cannot be read.
  bool IsMalformed(const Id& id) const { return malformed_.Contains(Kind::Path(id)); }

 protected:
  zk::TreeCache::Interest InterestIn(std::string_view path) const override {
    return InterestOf(path, records_);
  }
  void OnZnode(const std::string& path, const zk::NodeData& node) override { Follow(path, node, records_); }
  void OnZnodeGone(const std::string& path) override { Remove(path, records_); }

  RecordMap<Stored> records_;

 private:
  static Settings SettingsOf() {
    Settings settings{Kind::kName, Kind::kRoot};
    if constexpr (requires { Kind::kLogger; }) settings.logger = Kind::kLogger;
    return settings;
  }
};

}  // namespace nodepool::store
