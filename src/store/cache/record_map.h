#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/find_or_empty.h"
#include "base/listeners.h"
#include "base/subscription.h"
#include "store/decode.h"

namespace nodepool::store {

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

}  // namespace nodepool::store
