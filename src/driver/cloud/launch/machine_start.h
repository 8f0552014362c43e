#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "async/loop.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/api/list_cache.h"

namespace nodepool::driver::cloud {

// Where a machine can be reached; empty: nowhere there.
struct MachineAddresses {
  std::string public_ipv4;
  std::string public_ipv6;
  std::string private_ipv4;
};
// The instance has these addresses, and is used at the first of them that there is.
void SetAddresses(const MachineAddresses& addresses, Instance& instance);

// What Adapter::ConsoleLog returns of a console's text: its end, at most 16 KiB in whole lines; none: it is
// empty.
std::optional<std::string> EndOfConsole(std::string text);

// Throws Error(kFail), naming the field, if an adapter's instance is impossible or must not get into a
// record: an id that is neither text nor an object, text that is not UTF-8, amounts that are negative or NaN.
void CheckInstance(const Instance& instance);

// The same for what an adapter lists: an entry that cannot be distinguished from others would be retained or
// deleted by mistake.
void CheckResource(const Resource& resource);

// The start of a machine, as consecutive lists of the cloud show it: when its absence means something, and
// when it can be used.
class MachineStart {
 public:
  // The creation has been accepted now. `wants_address`: the machine is to get a public address, which may
  // come a moment after it runs. The loop outlives it.
  MachineStart(Loop& loop, bool wants_address)
      : loop_(loop), wants_address_(wants_address), accepted_(loop.SteadyNow()) {}

  SteadyTime accepted() const { return accepted_; }
  // A list may be older than the machine, or of a part of the cloud that does not know it yet. `begun`: when
  // the reading of a list began that does not show the machine.
  bool IsGone(SteadyTime begun) const { return has_been_listed_ || IsConsistent(begun); }
  // So long after the creation every list shows the machine if it exists.
  bool IsConsistent(SteadyTime begun) const;

  bool has_been_listed() const { return has_been_listed_; }
  // A list shows the machine. True: it runs and has its addresses, or has waited long enough for the public
  // one.
  bool IsUsable(bool is_running, bool has_address);

 private:
  Loop& loop_;
  bool wants_address_;
  SteadyTime accepted_;
  SteadyTime running_since_{};
  bool has_been_listed_ = false;
};

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
