#pragma once

#include <cstdint>
#include <map>
#include <optional>
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

// What the simulation stores of an upload.
struct FakeImageFile {
  std::string format;
  std::uint64_t size = 0;  // bytes
  std::optional<std::string> md5;
  std::optional<std::string> sha256;
};

struct FakeImage {
  std::string id;
  std::string name;
  std::map<std::string, std::string> metadata;
  FakeImageFile file;
  bool is_active = true;  // the cloud has all of it
};

}  // namespace nodepool::drivers
