#pragma once

#include <boost/json/value.hpp>
#include <cstddef>
#include <unordered_set>

namespace nodepool::driver::cloud {

// Equal for equal ids, which are texts or objects whose keys may have any order. Keyed as HashText is, since
// a cloud chooses its ids.
struct ExternalIdHash {
  std::size_t operator()(const boost::json::value& id) const;
};

using ExternalIds = std::unordered_set<boost::json::value, ExternalIdHash>;

}  // namespace nodepool::driver::cloud
