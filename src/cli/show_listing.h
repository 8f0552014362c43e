#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/command.h"
#include "listing/selection.h"
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

// Names of providers, images and labels on a command line that nobody knows, mostly misspelt ones.

bool IsConfigured(const driver::LoadedConfig& config, const ProviderName& provider);

// "nope is not configured, and there are no records of it", and the configured name that was meant.
std::string UnknownProvider(const driver::LoadedConfig& config, const ProviderName& provider);
std::string UnknownImage(const driver::LoadedConfig& config, const ImageName& image);

// The providers and labels of the filter that are not configured.
std::set<std::string> UnconfiguredWords(const driver::LoadedConfig& config, const listing::RowFilter& filter);

// "nope is not configured, and there are no records of it", for each provider and label of the filter that is
// neither configured nor in a row of the listing.
std::vector<std::string> UnknownWords(const driver::LoadedConfig& config, const listing::Listing& listing,
                                      const listing::RowFilter& filter);

}  // namespace nodepool::cli

namespace CLI {  // NOLINT(readability-identifier-naming): the name is CLI11's
class App;
}

namespace nodepool::cli {

// The options --state, --label and --provider of a command. Must outlive the parsing.
class FilterArguments {
 public:
  // Adds only the options for which there is a column.
  void AddTo(CLI::App& command, const std::vector<listing::Column>& columns);
  // The given filter. Throws CLI::ValidationError for an impossible value.
  listing::RowFilter Filter(const std::vector<listing::Column>& columns) const;

 private:
  std::map<listing::Kind, std::vector<std::string>> words_;
};

// Declares a command that shows what `make` returns after parsing, with all listing options that apply to it;
// its columns must not depend on the arguments. Returns the command, so that the caller can add options.
CLI::App* AddListing(CLI::App& app, Invocation& invocation, const std::string& name, const std::string& help,
                     std::function<ListingCommand(Output)> make);

// The same with --detail, whose help is `detail_help`. In detail a listing has the columns that it has
// otherwise, and more, which --output may name without --detail, too.
CLI::App* AddDetailedListing(CLI::App& app, Invocation& invocation, const std::string& name,
                             const std::string& help, const std::string& detail_help,
                             std::function<ListingCommand(Output, bool is_detailed)> make);

}  // namespace nodepool::cli
