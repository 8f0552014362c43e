#pragma once

#include <cstdint>

#include "zk/types.h"

namespace nodepool::zk {

// How many children the znode ever had; the sequence number of the next one. A stat counts
// creations and deletions of children together, and a count of more than 31 bits has turned
// negative there.
inline std::int64_t ChildrenEverCreated(const Stat& stat) {
  auto changes = static_cast<std::int64_t>(static_cast<std::uint32_t>(stat.cversion));
  return (changes + stat.num_children) / 2;
}

}  // namespace nodepool::zk
