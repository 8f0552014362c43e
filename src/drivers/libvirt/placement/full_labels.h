#pragma once

#include <map>

#include "async/event.h"
#include "async/loop.h"
#include "base/ids.h"

namespace nodepool::drivers::libvirt {

// Labels for which no host had room. They are not tried again before a host's room has grown, a host came up,
// or half a minute is over (driver-libvirt.md 13.2).
class FullLabels {
 public:
  void Add(const LabelName& label, SteadyTime now) { since_[label] = now; }
  // Ends when the label may be tried; at once unless it was added.
  Task<> AwaitChance(Loop& loop, LabelName label);
  // A host has more room, or can be used.
  void RoomHasGrown();

 private:
  std::map<LabelName, SteadyTime> since_;
  WaitList growth_;
};

}  // namespace nodepool::drivers::libvirt
