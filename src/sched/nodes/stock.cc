#include "sched/nodes/stock.h"

#include <algorithm>

namespace nodepool::sched {

StockDecision DecideStock(const Stock& stock, const HoldOff& hold_off, SteadyTime now) {
  if (stock.min_ready <= 0) return {};
  if (stock.failed_at) {
    bool has_changed = stock.capacity_changed_at > *stock.failed_at;
    SteadyTime due_at = *stock.failed_at + (has_changed ? hold_off.always : hold_off.unchanged);
    if (now < due_at) return {.due_at = due_at};
  }
  return {.missing = std::max(0, stock.min_ready - stock.free - stock.under_way)};
}

}  // namespace nodepool::sched
