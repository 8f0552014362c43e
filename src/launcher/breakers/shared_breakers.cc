#include "launcher/breakers/shared_breakers.h"

#include <utility>

#include "async/attempt.h"

namespace nodepool::launcher {

SharedBreakers::SharedBreakers(Loop& loop, store::Store& store, store::RecordCache<Breaker>& cache)
    : store_(store), cache_(cache), logger_("nodepool.Breakers"), tasks_(loop, logger_) {}

SharedBreakers::~SharedBreakers() = default;

const Breaker* SharedBreakers::Find(const BreakerKey& key) const {
  auto pending = pending_.find(key);
  if (pending == pending_.end()) return cache_.Find(key);
  return pending->second.record ? &*pending->second.record : nullptr;
}

bool SharedBreakers::AreAnyOf(const ProviderName& provider) const {
  auto has_any = [&](const auto& breakers) {
    if (breakers.empty()) return false;  // as almost always; each label of each pool asks
    auto first = breakers.lower_bound(BreakerKey{provider});
    return first != breakers.end() && first->first.provider == provider;
  };
  return has_any(pending_) || has_any(cache_.all());
}

void SharedBreakers::Update(const BreakerKey& key, store::Breakers::Change change) {
  const Breaker* now = Find(key);
  std::optional<Breaker> after = change(now == nullptr ? std::nullopt : std::optional(*now));
  Pending& pending = pending_[key];
  pending.record = std::move(after);
  pending.changes.push_back(std::move(change));
  if (std::exchange(pending.is_writing, true)) return;
  std::shared_ptr<void> ended(nullptr, [this, key](void*) { Ended(key); });
  tasks_.Spawn("write breaker", Write(key, std::move(ended)));
}

Task<> SharedBreakers::Write(BreakerKey key, std::shared_ptr<void> /*ended*/) {
  Outcome<> written = co_await Attempt(WriteAll(key));
  if (!written && !FailedWith(written, Verdict::kLostSession)) {
    logger_.Error("The breaker of {} could not be written: {}", ToString(key), written.error().message());
  }
}

// Until the cache shows what was written, it shows the record as it was.
Task<> SharedBreakers::WriteAll(BreakerKey key) {
  while (!pending_.at(key).changes.empty()) {
    auto changes = std::exchange(pending_.at(key).changes, {});
    store::Breakers::Change all = [changes](std::optional<Breaker> now) {
      for (const store::Breakers::Change& change : changes) now = change(std::move(now));
      return now;
    };
    co_await store_.breakers.Update(key, std::move(all));
    co_await cache_.CatchUp();
  }
}

void SharedBreakers::Ended(const BreakerKey& key) {
  pending_.erase(key);
  written_.Notify(key);
}

}  // namespace nodepool::launcher
