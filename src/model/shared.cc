#include "model/shared.h"

#include <functional>
#include <memory>
#include <mutex>
#include <unordered_set>

#include "model/resources.h"

namespace nodepool {
namespace {

std::size_t HashOf(const std::string& text) { return std::hash<std::string>()(text); }

std::size_t HashOf(const Resources& amounts) {
  std::size_t hash = amounts.size();
  for (const auto& [name, amount] : amounts) hash = hash * 31 + (HashOf(name) ^ std::hash<double>()(amount));
  return hash;
}

// All entries of a type. An entry's last user leaves under the mutex, so that those that are found have one.
template <class Entry>
class Entries {
 public:
  // Never destroyed: other static objects may hold values.
  static Entries& Instance() {
    static Entries& entries = *new Entries;
    return entries;
  }

  template <class Value>
  Entry* Keep(Value value) {
    std::lock_guard lock(mutex_);
    if (auto found = entries_.find(value); found != entries_.end()) {
      (*found)->users.fetch_add(1, std::memory_order_relaxed);
      return found->get();
    }
    return entries_.insert(std::make_unique<Entry>(std::move(value))).first->get();
  }

  void Drop(Entry* entry) {
    std::uint32_t users = entry->users.load(std::memory_order_relaxed);
    while (users > 1) {
      if (entry->users.compare_exchange_weak(users, users - 1, std::memory_order_acq_rel)) return;
    }
    std::lock_guard lock(mutex_);
    if (entry->users.fetch_sub(1, std::memory_order_acq_rel) == 1)
      entries_.erase(entries_.find(entry->value));
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const auto& value) const { return HashOf(*value); }
    std::size_t operator()(const std::unique_ptr<Entry>& entry) const { return HashOf(*entry->value); }
  };
  struct Equal {
    using is_transparent = void;
    static const auto& ValueOf(const auto& value) { return value; }
    static const auto& ValueOf(const std::unique_ptr<Entry>& entry) { return entry->value; }
    bool operator()(const auto& a, const auto& b) const {
      // The same one is found also where an amount is not a number.
      return &ValueOf(a) == &ValueOf(b) || ValueOf(a) == ValueOf(b);
    }
  };

  std::mutex mutex_;
  std::unordered_set<std::unique_ptr<Entry>, Hash, Equal> entries_;
};

}  // namespace

template <class T>
typename Shared<T>::Entry* Shared<T>::Keep(std::optional<T> value) {
  return Entries<Entry>::Instance().Keep(std::move(value));
}

template <class T>
void Shared<T>::Drop(Entry* entry) {
  Entries<Entry>::Instance().Drop(entry);
}

template class Shared<std::string>;
template class Shared<Resources>;

}  // namespace nodepool
