#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "async/task.h"
#include "base/error.h"
#include "model/resources.h"

namespace nodepool::driver::cloud {

// What both use, the smaller amount of each.
Resources Least(const Resources& one, const Resources& other);

// The sizes of a cloud's kinds of machine as far as they were asked for; they never change. Key: the name of
// the kind, with its place where the cloud has other kinds in other places.
template <class Key, class Size>
class MachineSizes {
 public:
  // Asks the cloud for the size of a kind; none: it has no such kind.
  using Read = std::function<Task<std::optional<Size>>(Key)>;

  // `read` is for Learn.
  explicit MachineSizes(Read read = nullptr) : read_(std::move(read)) {}

  // Null: not asked for yet, or the cloud has no such kind.
  const Size* Find(const Key& key) const {
    auto found = known_.find(key);
    return found == known_.end() ? nullptr : &found->second;
  }
  // Whether it was asked for, and the cloud has no such kind.
  bool IsUnknown(const Key& key) const { return unknown_.contains(key); }

  // What a machine of one of the kinds uses at least: of what all use, as much as the smallest does; a node
  // that needs more than that is refused by the cloud. None: the cloud has none of them. Error(kRetry): a
  // size is not known yet, with `unknown` as its message.
  std::optional<Resources> LeastNeed(const std::vector<Key>& keys,
                                     std::function<Resources(const Key&, const Size&)> need,
                                     const char* unknown) const {
    std::optional<Resources> least;
    for (const Key& key : keys) {
      if (IsUnknown(key)) continue;
      const Size* size = Find(key);
      if (size == nullptr) throw Error(Verdict::kRetry, unknown);
      Resources own = need(key, *size);
      least = least ? Least(*least, own) : std::move(own);
    }
    return least;
  }

  // Asks for the size of a kind, unless it is known. A kind that the cloud does not have it may get, so that
  // it is asked for again. Errors: those of the reading.
  Task<> Learn(Key key) {
    if (Find(key) != nullptr) co_return;
    std::optional<Size> size = co_await read_(key);
    if (size) Set(key, std::move(*size));
    if (!size) SetUnknown(key);
  }

 protected:
  void Set(const Key& key, Size size) {
    unknown_.erase(key);
    known_.insert_or_assign(key, std::move(size));
  }
  // The cloud has no such kind; it may get it.
  void SetUnknown(const Key& key) {
    if (!known_.contains(key)) unknown_.insert(key);
  }

 private:
  Read read_;
  std::map<Key, Size> known_;
  std::set<Key> unknown_;
};

}  // namespace nodepool::driver::cloud
