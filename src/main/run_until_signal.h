#pragma once

#include "driver/testing/contract.h"

namespace nodepool {

inline constexpr int kInterrupted = 130;  // the exit status after a signal

// Runs the contract to its end or until SIGINT or SIGTERM; then the machines of the current check are
// removed. A second signal ends the program at once, and so does, with kInterrupted, a call of the
// driver that does not end. Returns whether there was a signal.
Task<bool> RunUntilSignal(driver::testing::Subject subject);

}  // namespace nodepool
