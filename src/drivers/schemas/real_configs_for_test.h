#pragma once

#include <string>

namespace nodepool::drivers {

// A file of tests/data/configs.
inline std::string RealConfigPath(const std::string& name) {
  return std::string(NODEPOOL_TEST_DATA) + "/configs/" + name;
}

}  // namespace nodepool::drivers
