#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/gate.h"
#include "async/pace.h"
#include "listing/listing.h"
#include "net/http/http.h"
#include "store/cache/caches.h"
#include "web/lists/node_rows.h"

namespace nodepool::web {

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
