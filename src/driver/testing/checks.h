#pragma once

#include <span>
#include <string>

#include "driver/testing/machines.h"

namespace nodepool::driver::testing {

struct Check {
  const char* name;
  // Throws if the check fails; returns the reason if the check could not be made, else an empty text.
  Task<std::string> (*run)(Machines& machines);
};

// The checks of the contract, in order; the first creates a machine.
std::span<const Check> Checks();

}  // namespace nodepool::driver::testing
