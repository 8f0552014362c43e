#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "async/task.h"
#include "async/task_group.h"
#include "base/error.h"
#include "base/log/logging.h"
#include "driver/cloud/adapter.h"
#include "driver/provider_config.h"
#include "model/node.h"

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

// A limit of an account and how much all who share the account use of it.
struct Counter {
  double limit = 0;
  double usage = 0;
};

// The limits that a cloud reports, with the use of each, by the resources of nodes that count under them.
class AccountCounters {
 public:
  // Calls Set for what the cloud reports now.
  using Read = std::function<Task<>(AccountCounters& counters)>;

  // `cloud` and `what` are for log lines: "Google", "region us-central1".
  AccountCounters(std::string cloud, std::string what, log::Logger logger, Read read)
      : cloud_(std::move(cloud)),
        what_(std::move(what)),
        logger_(std::move(logger)),
        read_(std::move(read)) {}

  // Reads them again. What cannot be read keeps its last values, or is unlimited; each cause is logged once.
  Task<> Refresh();
  // Why the last reading failed; empty: it succeeded.
  const std::string& fault() const { return fault_; }

  // Amounts are the cloud's, and may be anything. A counter without a name is left out.
  void Set(const std::string& resource, double limit, double usage);
  // Null: the cloud reports no such limit, or it is not known yet.
  const Counter* Find(const std::string& resource) const;

  // The limits, or the use, of those of `resources` that are known.
  Resources Limits(const std::set<std::string>& resources) const {
    return Collect(resources, &Counter::limit);
  }
  Resources Usage(const std::set<std::string>& resources) const {
    return Collect(resources, &Counter::usage);
  }

 private:
  Resources Collect(const std::set<std::string>& resources, double Counter::*amount) const;

  std::string cloud_;
  std::string what_;
  log::Logger logger_;
  Read read_;
  std::map<std::string, Counter> known_;
  std::string fault_;
};

// What others use of an account's limits, in a cloud that says how much of each is used in all: also machines
// that no list of this provider shows. Such figures lag, so they are read again a minute after a change.
class OthersUse {
 public:
  // The framework is told when the figures have settled. Both outlive this, whose task belongs to `tasks`.
  OthersUse(TaskGroup& tasks, Framework& framework) : tasks_(tasks), framework_(framework) {}

  // The figures were read: what all use, and what the provider's own machines do, by resource.
  void Compare(const Resources& all, const Resources& own);

  // As of Adapter::UsedByOthers; none: it is not known yet.
  std::optional<QuotaInformation> Find() const;

 private:
  Task<> ReadAgainLater();

  TaskGroup& tasks_;
  Framework& framework_;
  std::optional<Resources> used_;
  bool is_settling_ = false;  // it will be read again soon
};

}  // namespace nodepool::driver::cloud
