#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "listing/row_filter.h"
#include "store/cache/caches.h"

namespace nodepool::cli {

using store::Caches;

// A cache that a listing needs: &Caches::nodes.
class NeededCache {
 public:
  template <class Cache>
  NeededCache(Cache Caches::*cache) : find_([cache](Caches& caches) { return &(caches.*cache); }) {}
  store::Cache& In(Caches& caches) const { return *find_(caches); }

 private:
  std::function<store::Cache*(Caches&)> find_;
};

enum class Color { kAuto, kAlways, kNever };  // auto: as Context::wants_color says

// How to show a listing.
struct View {
  Output output = Output::kTable;
  listing::RowFilter filter;
  Color color = Color::kAuto;
  bool is_wide = false;      // all columns in full, also on a terminal
  bool is_detailed = false;  // as Page::is_detailed
  // The keys of the columns to show, in this order; none: the default columns for the kind of output.
  std::vector<std::string> columns = {};
  // Show it again after changes in ZooKeeper, with at least this time between.
  std::optional<Duration> watch;
};

// A command that lists something.
struct ListingCommand {
  using Listings = std::vector<listing::Listing>;

  std::vector<NeededCache> needs;
  // The columns that rows can be filtered by; empty: none.
  std::vector<listing::Column> columns = {};
  // Each row shows one record of the cache, which has what it can be filtered by as texts: records that no
  // row is made of are not even parsed.
  bool is_filtered_by_record = false;
  // Makes the listings from the caches, of which those that it does not need are empty. The cells may refer
  // to them.
  std::function<Task<Listings>(Context&, const Caches&)> make;
  // Makes the whole output, without a line break at its end, if there is more than one listing.
  std::function<std::string(const Listings&, const Page&)> layout = {};
  bool can_be_watched = true;  // false: some of it changes without ZooKeeper's knowledge
};

// Runs the command: reads the records it needs and shows the listing. Writes nothing; malformed records are
// reported in the log and left out. With `view.watch` it follows changes until it is interrupted or the
// reader closes its output, both with status 0; a terminal is cleared before each table. `view.filter` must
// use only columns that the listings have.
Task<int> ShowListing(Context& context, ListingCommand command, View view);

}  // namespace nodepool::cli
