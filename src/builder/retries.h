#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"

namespace nodepool::builder {

// When a failed job may be tried again: after a pause that doubles with each failure (D-40), or at once when
// `circumstances`, any text that describes them, have changed.
template <class Key>
class Retries {
 public:
  Retries(Duration first, Duration last) : first_(first), last_(last) {}

  // Records a failure; returns the pause until the next attempt.
  Duration Failed(const Key& key, std::string circumstances, SteadyTime now) {
    Entry& entry = entries_[key];
    bool is_again = entry.pause > Duration::zero() && entry.circumstances == circumstances;
    entry.pause = is_again ? std::min(entry.pause * 2, last_) : first_;
    entry.circumstances = std::move(circumstances);
    entry.at = now + entry.pause;
    return entry.pause;
  }
  // The job was not done and did not fail: another process is working on it.
  void NotYet(const Key& key, std::string circumstances, SteadyTime now) {
    Entry& entry = entries_[key];
    entry.circumstances = std::move(circumstances);
    entry.at = now + kNotYet;
  }
  void Succeeded(const Key& key) { entries_.erase(key); }

  // When the next attempt is due; nullopt: now.
  std::optional<SteadyTime> WaitsUntil(const Key& key, const std::string& circumstances,
                                       SteadyTime now) const {
    auto found = entries_.find(key);
    if (found == entries_.end() || found->second.at <= now) return std::nullopt;
    if (found->second.circumstances != circumstances) return std::nullopt;
    return found->second.at;
  }

 private:
  static constexpr Duration kNotYet = std::chrono::seconds(10);

  struct Entry {
    Duration pause{0};
    SteadyTime at;
    std::string circumstances;
  };

  Duration first_;
  Duration last_;
  std::map<Key, Entry> entries_;
};

}  // namespace nodepool::builder
