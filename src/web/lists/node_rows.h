#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "async/pace.h"
#include "listing/aged_text.h"
#include "store/cache/node_cache.h"

namespace nodepool::web {

// The rows of a list of all nodes. Their texts are cached and made again only when the node has changed: only
// ages depend on the time. One task uses them at a time.
class NodeRows {
 public:
  // Appends a node's row to an empty text.
  using Make = std::function<void(listing::AgedText& row, const store::StoredNode& node)>;

  explicit NodeRows(Make make) : make_(std::move(make)) {}

  struct Limits {
    std::size_t rows = std::numeric_limits<std::size_t>::max();
    // Without ages. The row that exceeds it is the last.
    std::size_t bytes = std::numeric_limits<std::size_t>::max();
  };

  // Makes the first rows, by id, up to the limits. The others are dropped from the cache. Returns whether
  // these are all.
  Task<bool> Update(const store::NodeCache& nodes, Limits limits, Pace& pace);

  using See = std::function<void(const listing::AgedText&)>;
  // Calls `see` for every row, by id.
  Task<> ForEach(See see, Pace& pace) const;

 private:
  struct Row {
    NodeId id;
    std::int64_t mzxid;  // of the record
    bool is_locked;
    listing::AgedText text;
  };

  // Takes the node's row from `old_rows`, or makes it. `old_rows` are the cached rows not yet visited, by id.
  Row RowOf(const store::StoredNode& node, std::span<Row>& old_rows);

  Make make_;
  listing::AgedText scratch_;  // a text grows in this, so that cached texts have no spare capacity
  std::vector<Row> rows_;      // by id
};

}  // namespace nodepool::web
