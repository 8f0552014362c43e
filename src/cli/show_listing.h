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
#include "store/cache/request_cache.h"

namespace nodepool::cli {

// Which records a listing is made from.
struct Needs {
  bool nodes = false;
  bool requests = false;
  bool images = false;
  bool jobs = false;
  bool components = false;
};

// Records in memory, as they are in ZooKeeper; those that were not asked for are empty.
class Tree {
 public:
  Tree(Context& context, Needs needs);
  void Start();
  Task<> Stop();
  // Ends when everything asked for is complete.
  Task<> WaitSynced();
  // Sets `changed` at each change from now on, for as long as the registrations live.
  std::vector<Subscription> TellOfChanges(Event& changed);

  const store::NodeCache& nodes() const { return nodes_; }
  const store::RequestCache& requests() const { return requests_; }
  const store::ImageCache& images() const { return images_; }
  const store::JobCache& jobs() const { return jobs_; }
  const store::ComponentRegistry& components() const { return components_; }

 private:
  Needs needs_;
  store::NodeCache nodes_;
  store::RequestCache requests_;
  store::ImageCache images_;
  store::JobCache jobs_;
  store::ComponentRegistry components_;
};

enum class Color { kAuto, kAlways, kNever };  // auto: as Context::wants_color says

// How a person wants to see a listing.
struct View {
  Output output = Output::kTable;
  listing::RowFilter filter;
  Color color = Color::kAuto;
  bool is_wide = false;  // all columns in full, also on a terminal
  // The keys of the columns to show, in this order; none: those that the list has for its reader.
  std::vector<std::string> columns = {};
  // Show it again after changes in ZooKeeper, with at least this time between.
  std::optional<Duration> watch;
};

// A command that lists something.
struct ListingCommand {
  using Listings = std::vector<listing::Listing>;

  Needs needs;
  // What rows can be chosen by; empty: nothing.
  std::vector<listing::Column> columns = {};
  // Of the tree as it is, to which the cells may refer.
  std::function<Task<Listings>(Context&, const Tree&)> make;
  // The whole output, without a line break at its end; when there is more than one listing.
  std::function<std::string(const Listings&, const Page&)> layout = {};
  bool can_be_watched = true;  // false: some of it changes without ZooKeeper's knowledge
};

// Runs the command: reads what it needs, directly, and shows it. Writes nothing; malformed
// records are reported in the log and left out. With `view.watch` it follows changes until
// it is interrupted or nobody reads its output, which is its good end; a terminal is
// cleared before each table. `view.filter` asks only for what the listings have.
Task<int> ShowListing(Context& context, ListingCommand command, View view);

}  // namespace nodepool::cli
