#pragma once

#include <string>
#include <vector>

#include "driver/driver.h"

namespace nodepool::driver {

// The directories of extra drivers (D-86): those that were `named` on the command line,
// else those of NODEPOOL_DRIVERS_PATH (separated by colons, null: not set), and
// lib/nodepool/drivers beside the program's own directory if it exists.
std::vector<std::string> DriverDirectories(std::vector<std::string> named, const char* path_variable);

// Loads every "*.so" of the directories, by name within each, and adds its driver to
// `drivers`. Objects stay loaded for the life of the process.
//
// Returns what went wrong, a sentence for each file or directory; it harms only the
// drivers in question. A file that was made for another version of the API is refused
// before any of its code runs.
std::vector<std::string> LoadDrivers(const std::vector<std::string>& directories, Registry& drivers);

}  // namespace nodepool::driver
