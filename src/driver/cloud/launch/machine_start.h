#pragma once

#include "async/loop.h"

namespace nodepool::driver::cloud {

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

}  // namespace nodepool::driver::cloud
