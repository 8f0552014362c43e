#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "store/tree.h"
#include "zk/recipes/tree_cache.h"

namespace nodepool::store {

// Whether the text of a record may matter; not set: every record matters.
using IsWanted = std::function<bool(std::string_view text)>;

// Reads everything below `root` once and reports it to `listener`, by path on each level, parents before what
// is below them, without following changes: what changes meanwhile is reported before or after the change. Of
// records that are not wanted nothing is reported, and nothing below them is read. A root that does not exist
// has nothing below it. Reads are repeated after connection losses; kLostSession ends it. `listener` gets no
// OnGone() and no OnSynced().
Task<> ReadOnce(Tree& tree, std::string root, zk::TreeCache::Listener& listener, IsWanted is_wanted);

}  // namespace nodepool::store
