#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "async/loop.h"

namespace nodepool::driver::cloud {

// The machines made here a moment ago, with what the cloud said of each: the cloud may not know them
// everywhere yet, so that their absence proves nothing.
template <class Details = std::monostate>
class RecentMachines {
 public:
  // `lasts`: for how long a machine is recent. The loop outlives it.
  RecentMachines(Loop& loop, Duration lasts) : loop_(loop), lasts_(lasts) {}

  void Add(std::string id, Details details = {}) {
    DropOld();
    in_order_.emplace_back(loop_.SteadyNow(), id);
    machines_.insert_or_assign(std::move(id), Machine{loop_.SteadyNow(), std::move(details)});
  }
  // It is known everywhere, or will never be.
  void Remove(const std::string& id) { machines_.erase(id); }
  // None: it is not recent.
  std::optional<Details> Find(const std::string& id) {
    DropOld();
    auto found = machines_.find(id);
    return found == machines_.end() ? std::nullopt : std::optional(found->second.details);
  }

 private:
  struct Machine {
    SteadyTime made;
    Details details;
  };

  void DropOld() {
    while (!in_order_.empty() && loop_.SteadyNow() - in_order_.front().first >= lasts_) {
      auto found = machines_.find(in_order_.front().second);
      bool is_it = found != machines_.end() && found->second.made == in_order_.front().first;
      if (is_it) machines_.erase(found);
      in_order_.pop_front();
    }
  }

  Loop& loop_;
  Duration lasts_;
  std::deque<std::pair<SteadyTime, std::string>> in_order_;
  std::map<std::string, Machine> machines_;
};

}  // namespace nodepool::driver::cloud
