#include "bench/load_modes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace nodepool::bench {
namespace {

constexpr LoadMode kModes[] = {
    {.name = "launch", .help = "each request gets a new node, which is used and deleted"},
    {.name = "reuse",
     .help = "the nodes are ready before; measured until the requests are fulfilled",
     .before = Afterwards::kKeepReady,
     .after = Afterwards::kNothing},
    {.name = "sets", .help = "each request gets three new nodes", .nodes_per_request = 3},
    {.name = "held",
     .help = "as launch, beside as many nodes that requests before have left in hold",
     .before = Afterwards::kHold},
    {.name = "quota",
     .help = "as launch, in a pool with max-servers: the crowd is served in waves",
     .is_limited = true},
};

}  // namespace

std::span<const LoadMode> LoadModes() { return kModes; }

const LoadMode* FindLoadMode(std::string_view name) {
  auto mode = std::ranges::find(kModes, name, &LoadMode::name);
  return mode == std::end(kModes) ? nullptr : mode;
}

std::string LoadModesHelp() {
  std::string text;
  for (const LoadMode& mode : kModes) text += fmt::format("\n{}: {}", mode.name, mode.help);
  return text;
}

}  // namespace nodepool::bench
