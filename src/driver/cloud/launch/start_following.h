#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "driver/cloud/api/list_cache.h"
#include "driver/cloud/launch/machine_start.h"

namespace nodepool::driver::cloud {

// What a driver knows of a machine of its cloud that is being started.
template <class Machine>
struct StartSteps {
  // Whether the machine that lists show under the key is the one that was made. Null: no other can be.
  std::function<bool(const Machine&)> is_it;
  // Whether it runs; throws if it never will.
  std::function<bool(const Machine&)> runs;
  // Whether it has the public address that it is to get.
  std::function<bool(const Machine&)> has_address;
  // Asks the cloud about the creation while lists do not show the machine; true: it has ended, so that lists
  // would show it. Throws if it has failed. Null: there is nothing to ask about.
  std::function<Task<bool>()> ask;
  // Throws that the machine has vanished.
  std::function<void()> gone;
};

// Follows a machine from the moment its creation was accepted until it can be used, by a list that all
// launches share.
template <class Machine>
class StartFollowing {
 public:
  using List = api::ListCache<std::map<std::string, Machine>>;

  // `key`: of the machine in the list. Everything outlives it.
  StartFollowing(Loop& loop, List& list, std::string key, bool wants_address, StartSteps<Machine> steps)
      : loop_(loop),
        list_(list),
        key_(std::move(key)),
        steps_(std::move(steps)),
        start_(loop, wants_address),
        asked_(start_.accepted()) {}

  // Ends with the machine as the list shows it then; throws what the steps throw.
  Task<Machine> Await() {
    SteadyTime since = start_.accepted();
    while (true) {
      typename List::Listing listing = co_await list_.After(since, start_.accepted());
      since = listing.begun;
      auto found = listing.items->find(key_);
      bool is_it = found != listing.items->end() && (!steps_.is_it || steps_.is_it(found->second));
      if (is_it && IsUsable(found->second)) {
        list_.NoteStart(start_.accepted());
        co_return found->second;
      }
      if (!is_it) co_await NoteAbsence(since);
    }
  }

 private:
  // Between questions about a machine that lists do not show yet.
  static constexpr Duration kAskAgain = std::chrono::seconds(3);

  bool IsUsable(const Machine& machine) {
    bool runs = steps_.runs(machine);
    return start_.IsUsable(runs, steps_.has_address(machine));
  }

  Task<> NoteAbsence(SteadyTime begun) {
    SteadyTime now = loop_.SteadyNow();
    bool is_due = start_.has_been_listed() || now - asked_ >= kAskAgain;
    if (is_due && steps_.ask) {
      asked_ = now;
      bool has_ended = co_await steps_.ask();
      has_ended_ = has_ended_ || has_ended;
    }
    if (!start_.IsGone(begun)) co_return;
    if (has_ended_ || !steps_.ask || start_.IsConsistent(begun)) steps_.gone();
  }

  Loop& loop_;
  List& list_;
  std::string key_;
  StartSteps<Machine> steps_;
  MachineStart start_;
  SteadyTime asked_;
  bool has_ended_ = false;
};

}  // namespace nodepool::driver::cloud
