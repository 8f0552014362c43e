#pragma once

#include <span>
#include <string>

#include "driver/testing/machines.h"

namespace nodepool::driver::testing {

struct Check {
  const char* name;
  // Fails by throwing; a text is the reason why the check could not be made.
  Task<std::string> (*run)(Machines& machines);
};

// The checks of the contract, in order; the first creates a machine.
std::span<const Check> Checks();

}  // namespace nodepool::driver::testing
