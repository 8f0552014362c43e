#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "listing/aged_text.h"
#include "store/cache/node_cache.h"

namespace nodepool::web {

// The rows of a list of all nodes. The text of each is kept, and made again only when its
// node has changed: what changes with time alone are ages.
class NodeRows {
 public:
  // Appends a node's row to an empty text.
  using Make = std::function<void(listing::AgedText& row, const store::StoredNode& node)>;

  explicit NodeRows(Make make) : make_(std::move(make)) {}

  // Shows the first `limit` rows, by id. The others are forgotten.
  void ForEach(const store::NodeCache& nodes, const std::function<void(const listing::AgedText&)>& see,
               std::size_t limit = std::numeric_limits<std::size_t>::max());

 private:
  struct Row {
    NodeId id;
    std::int64_t mzxid;  // of the record
    bool is_locked;
    listing::AgedText text;
  };

  // Takes the row as it was, or makes it. `kept` are rows that were not asked for yet, by id.
  Row RowOf(const store::StoredNode& node, std::span<Row>& kept);

  Make make_;
  listing::AgedText scratch_;  // where a text grows, so that those that are kept take no more than they need
  std::vector<Row> rows_;      // by id
};

}  // namespace nodepool::web
