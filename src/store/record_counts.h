#pragma once

#include <cstddef>
#include <set>
#include <string_view>

#include "base/ids.h"

namespace nodepool::store {

// How many records of each kind are among paths of the tree.
struct RecordCounts {
  std::size_t nodes = 0;
  std::size_t requests = 0;
  std::size_t builds = 0;
  std::size_t uploads = 0;
  std::set<ImageName> images;

  // The path of any znode.
  void Add(std::string_view path);
};

}  // namespace nodepool::store
