#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "bench/load_client.h"

namespace nodepool::bench {

// What load_bench measures, as data.
struct LoadMode {
  std::string_view name;
  std::string_view help;
  int nodes_per_request = 1;
  // What as many requests before the measured ones leave of their nodes; none: there are no such requests.
  std::optional<Afterwards> before = std::nullopt;
  Afterwards after = Afterwards::kUse;
  bool is_limited = false;  // the pool has max-servers
};

std::span<const LoadMode> LoadModes();
// Null: there is no such mode.
const LoadMode* FindLoadMode(std::string_view name);
// A line for each mode.
std::string LoadModesHelp();

}  // namespace nodepool::bench
