#pragma once

#include <cstddef>

#include "async/loop.h"

namespace nodepool::testing {

// Runs all handlers of the loop that can run without time passing; returns their number.
inline std::size_t RunReady(Loop& loop) {
  loop.context().restart();
  return loop.context().poll();
}

}  // namespace nodepool::testing
