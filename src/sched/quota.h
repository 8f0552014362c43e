#pragma once

#include "model/resources.h"

// Arithmetic on resources (launcher.md 19.1). An amount that is absent is 0; a limit
// that is absent is unlimited.
namespace nodepool::sched {

void Add(Resources& amount, const Resources& more, int times = 1);
void Subtract(Resources& amount, const Resources& less);

// What is missing by resource when `need` comes on top of `used` under `limit`;
// empty when it fits.
Resources Shortage(const Resources& limit, const Resources& used, const Resources& need);

inline bool Fits(const Resources& limit, const Resources& used, const Resources& need) {
  return Shortage(limit, used, need).empty();
}

}  // namespace nodepool::sched
