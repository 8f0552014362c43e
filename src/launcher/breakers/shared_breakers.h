#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "async/task_group.h"
#include "base/listeners.h"
#include "store/cache/record_cache.h"
#include "store/store.h"

namespace nodepool::launcher {

// The open breakers that the launchers share, as this launcher sees them: their records, and at once what it
// is writing to them itself.
class SharedBreakers {
 public:
  // Both outlive it.
  SharedBreakers(Loop& loop, store::Store& store, store::RecordCache<Breaker>& cache);
  ~SharedBreakers();  // call Stop() first

  // Null: the breaker is closed. Valid until the next change.
  const Breaker* Find(const BreakerKey& key) const;
  // Whether any of the provider, its pools or labels is open, or being written.
  bool AreAnyOf(const ProviderName& provider) const;
  // Those that have a record.
  const std::map<BreakerKey, Breaker>& all() const { return cache_.all(); }

  // Changes the record, in the background, from its newest version on; changes that come together are written
  // together. Find() shows it at once, and until the write has ended; what cannot be written is logged and
  // lost.
  void Update(const BreakerKey& key, store::Breakers::Change change);

  // `before` and `after` as of the cache; null: closed.
  Subscription OnChange(store::RecordCache<Breaker>::Listener listener) const {
    return cache_.OnChange(std::move(listener));
  }
  // Called when a write has ended; Find() shows what came of it.
  Subscription OnWritten(std::function<void(const BreakerKey&)> listener) const {
    return written_.Add(std::move(listener));
  }

  // The session is lost, and with it what is being written.
  void SessionLost() { tasks_.CancelAll(); }
  Task<> Stop() { return tasks_.Stop(); }

 private:
  struct Pending {
    std::optional<Breaker> record;
    std::vector<store::Breakers::Change> changes;  // not written yet
    bool is_writing = false;
  };

  // `ended` is called when the task is over, or was never begun.
  Task<> Write(BreakerKey key, std::shared_ptr<void> ended);
  Task<> WriteAll(BreakerKey key);
  void Ended(const BreakerKey& key);

  store::Store& store_;
  store::RecordCache<Breaker>& cache_;
  log::Logger logger_;
  std::map<BreakerKey, Pending> pending_;  // what is being written
  Listeners<const BreakerKey&> written_;
  TaskGroup tasks_;
};

}  // namespace nodepool::launcher
