#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/subscription.h"
#include "cli/page.h"
#include "listing/row_filter.h"
#include "store/cache/component_registry.h"
#include "store/cache/image_cache.h"
#include "store/cache/job_cache.h"
#include "store/cache/node_cache.h"
#include "store/cache/pause_cache.h"
#include "store/cache/request_cache.h"

namespace nodepool::cli {

// Which records a listing needs.
struct Needs {
  bool nodes = false;
  bool requests = false;
  bool images = false;
  bool jobs = false;
  bool components = false;
  bool pauses = false;  // of providers
};

// Caches of the records in ZooKeeper; those that were not requested are empty.
class Tree {
 public:
  Tree(Context& context, Needs needs);
  void Start();
  Task<> Stop();
  // Returns when all requested caches are complete.
  Task<> WaitSynced();
  // Sets `changed` at each later change, while the subscriptions live.
  std::vector<Subscription> TellOfChanges(Event& changed);

  const store::NodeCache& nodes() const { return nodes_; }
  const store::RequestCache& requests() const { return requests_; }
  const store::ImageCache& images() const { return images_; }
  const store::JobCache& jobs() const { return jobs_; }
  const store::ComponentRegistry& components() const { return components_; }
  const store::PauseCache& pauses() const { return pauses_; }

 private:
  Needs needs_;
  store::NodeCache nodes_;
  store::RequestCache requests_;
  store::ImageCache images_;
  store::JobCache jobs_;
  store::ComponentRegistry components_;
  store::PauseCache pauses_;
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

  Needs needs;
  // The columns that rows can be filtered by; empty: none.
  std::vector<listing::Column> columns = {};
  // Makes the listings from the current tree. The cells may refer to it.
  std::function<Task<Listings>(Context&, const Tree&)> make;
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
