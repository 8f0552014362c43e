#pragma once

#include <functional>
#include <map>
#include <set>

#include "async/event.h"

namespace nodepool {

// Values that are loaded once, on demand. Callers that want the same one at the same time wait for
// one load; its failure is thrown to the caller that started it, and the next one tries again.
// Value is copied; use a pointer for large ones.
template <class Key, class Value>
class AsyncCache {
 public:
  using Load = std::function<Task<Value>(Key)>;

  explicit AsyncCache(Load load) : load_(std::move(load)) {}
  AsyncCache(const AsyncCache&) = delete;
  AsyncCache& operator=(const AsyncCache&) = delete;

  Task<Value> Get(Key key) {
    while (loading_.contains(key)) co_await loaded_.Wait();
    if (const Value* known = Find(key)) co_return *known;
    Loading loading(*this, key);
    std::uint64_t generation = generation_;
    Value value = co_await load_(key);
    if (generation == generation_) values_.insert_or_assign(key, value);
    co_return value;
  }

  // Null when it is not (yet) known.
  const Value* Find(const Key& key) const {
    auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
  }

  // The next Get() loads it again; a load of it in progress counts.
  void Erase(const Key& key) { values_.erase(key); }

  void Clear() {
    values_.clear();
    ++generation_;
  }

 private:
  class Loading {
   public:
    Loading(AsyncCache& cache, const Key& key) : cache_(cache), key_(key) { cache_.loading_.insert(key_); }
    ~Loading() {
      cache_.loading_.erase(key_);
      cache_.loaded_.NotifyAll();
    }

   private:
    AsyncCache& cache_;
    Key key_;
  };

  Load load_;
  std::map<Key, Value> values_;
  std::set<Key> loading_;
  std::uint64_t generation_ =
      0;  // of the values; the result of a load that began before Clear() is not stored
  WaitList loaded_;
};

}  // namespace nodepool
