#include "drivers/libvirt/placement/full_labels.h"

#include "async/deadline.h"

namespace nodepool::drivers::libvirt {

namespace {

constexpr Duration kPause = std::chrono::seconds(30);

}  // namespace

Task<> FullLabels::AwaitChance(Loop& loop, LabelName label) {
  auto full = since_.find(label);
  if (full == since_.end()) co_return;
  SteadyTime until = full->second + kPause;
  if (loop.SteadyNow() < until) co_await EndsBy(loop, until, "room on a host", growth_.Wait());
}

void FullLabels::RoomHasGrown() {
  since_.clear();
  growth_.NotifyAll();
}

}  // namespace nodepool::drivers::libvirt
