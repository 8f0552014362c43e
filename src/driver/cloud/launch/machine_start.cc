#include "driver/cloud/launch/machine_start.h"

namespace nodepool::driver::cloud {

bool MachineStart::IsConsistent(SteadyTime begun) const {
  constexpr Duration kConsistent = std::chrono::seconds(60);
  return begun - accepted_ >= kConsistent;
}

bool MachineStart::IsUsable(bool is_running, bool has_address) {
  constexpr Duration kAddressLimit = std::chrono::seconds(30);
  has_been_listed_ = true;
  if (!is_running) return false;
  SteadyTime now = loop_.SteadyNow();
  if (running_since_ == SteadyTime()) running_since_ = now;
  return !wants_address_ || has_address || now - running_since_ >= kAddressLimit;
}

}  // namespace nodepool::driver::cloud
