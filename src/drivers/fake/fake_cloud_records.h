#pragma once

#include <map>
#include <string>

#include "drivers/fake/fake_config.h"

namespace nodepool::drivers {

enum class FakeServerStatus { kBuild, kActive, kError };

struct FakeServer {
  std::string id;
  std::string name;
  FakeFlavor flavor;
  std::string zone;
  std::map<std::string, std::string> metadata;
  FakeServerStatus status = FakeServerStatus::kBuild;
};

struct FakeImage {
  std::string id;
  std::string name;
  std::map<std::string, std::string> metadata;
};

}  // namespace nodepool::drivers
