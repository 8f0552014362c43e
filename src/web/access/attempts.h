#pragma once

#include <deque>
#include <map>
#include <string>

#include "base/clock.h"

namespace nodepool::web {

// Slows down failing attempts by key, the network of a client, within bounded memory: after each failure a
// pause, twice as long as the one before (http-requests.md 2.2).
class Attempts {
 public:
  // How long an attempt with this key has to wait yet; zero: not at all.
  Duration PauseOf(const std::string& key, SteadyTime now) const;
  void Failed(const std::string& key, SteadyTime now);
  std::size_t size() const { return failures_.size(); }

  static constexpr std::size_t kMaxKeys = 4096;

 private:
  struct Failures {
    int count = 0;
    SteadyTime last{};
  };

  void DropOld(SteadyTime now);

  std::map<std::string, Failures> failures_;
  std::deque<std::string> order_;  // of the keys, oldest first
};

}  // namespace nodepool::web
