#pragma once

#include <map>
#include <string>

#include "base/ids.h"
#include "driver/observer.h"

namespace nodepool::driver {

// Counts what one sweep deletes, and at the end reports a number for each kind to the observer, also when the
// sweep is interrupted.
class LeakTally {
 public:
  // `observer` may be null; it and `provider` outlive this.
  LeakTally(ProviderObserver* observer, const ProviderName& provider)
      : observer_(observer), provider_(provider) {}
  ~LeakTally() {
    if (observer_ == nullptr) return;
    for (const auto& [kind, count] : counts_) observer_->LeakedResourcesDeleted(provider_, kind, count);
  }
  LeakTally(const LeakTally&) = delete;
  LeakTally& operator=(const LeakTally&) = delete;

  void Add(const std::string& kind) { ++counts_[kind]; }

 private:
  ProviderObserver* observer_;
  const ProviderName& provider_;
  std::map<std::string, int> counts_;
};

}  // namespace nodepool::driver
