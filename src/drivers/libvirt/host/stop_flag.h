#pragma once

#include <atomic>
#include <memory>

namespace nodepool::drivers::libvirt::calls {

// Set by the loop when a transfer on a thread is to end.
using StopFlag = std::shared_ptr<std::atomic<bool>>;

}  // namespace nodepool::drivers::libvirt::calls
