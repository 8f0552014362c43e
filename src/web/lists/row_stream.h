#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "async/backoff.h"
#include "async/event.h"
#include "listing/listing.h"
#include "listing/shown_text.h"
#include "net/http/http.h"
#include "store/cache/cached_records.h"
#include "store/cache/caches.h"

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

// A list of all nodes as its text is made, piece by piece: what is in `add` is one node's row.
struct RowForm {
  using Append = std::function<void(std::string& out)>;

  Append begin;
  std::function<void(std::string& out, const store::StoredNode& node, WallTime now)> add;
  Append end;
};

// A list in Python's JSON.
RowForm JsonForm(NodeRows::Make make);
// A table of these cells, as wide as the nodes' rows are now: each is made once to see that. `make` makes the
// texts of all columns.
Task<RowForm> TableForm(listing::TableCells cells, NodeRows::Make make, const store::NodeCache& nodes,
                        WallTime now, Pace& pace);

// The lists that are too large to be kept (operations.md 6.7). They are made as they are sent, by turns.
class RowStreams {
 public:
  static constexpr std::size_t kMax = 100;

  explicit RowStreams(Loop& loop) : loop_(loop) {}

  // Whether there may be another one.
  bool has_place() const { return count_ < kMax; }
  // The list, compressed with gzip or not. Each row shows its node as it is when the row is made. The stream
  // fails when the records become incomplete. `records` outlive it.
  static std::shared_ptr<net::BodyStream> Begin(std::shared_ptr<RowStreams> streams,
                                                const store::Caches& records, RowForm form,
                                                bool is_compressed);
  // While the pass is held no piece is made.
  Task<Gate::Pass> EnterTurn() { return making_.Enter(); }

 private:
  class Stream;

  Loop& loop_;
  Gate making_{1};
  std::size_t count_ = 0;
};

}  // namespace nodepool::web
