#pragma once

#include <optional>

#include "base/clock.h"

namespace nodepool::sched {

// What is known of a label whose unused nodes are kept ready (launcher.md 14).
struct Stock {
  int min_ready = 0;                    // ≤ 0: none is kept (D-21)
  int free = 0;                         // ready nodes that no request has
  int under_way = 0;                    // requests of all launchers that are neither gone nor failed
  std::optional<SteadyTime> failed_at;  // when the last request failed
  SteadyTime capacity_changed_at{};     // the last time
};

// For how long nothing is requested after a request failed (D-27).
struct HoldOff {
  Duration always{};     // in any case
  Duration unchanged{};  // while no capacity has changed since
};

// How many nodes are to be requested now.
struct StockDecision {
  int missing = 0;
  std::optional<SteadyTime> due_at;  // nothing is requested before, because a request failed
};

StockDecision DecideStock(const Stock& stock, const HoldOff& hold_off, SteadyTime now);

}  // namespace nodepool::sched
