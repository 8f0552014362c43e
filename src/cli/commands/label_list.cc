#include "cli/commands/label_list.h"

#include <CLI/CLI.hpp>

#include "cli/commands/commands.h"
#include "cli/listing_arguments.h"
#include "driver/loading/configured.h"
#include "listing/label_listing.h"

namespace nodepool::cli {
namespace {

Task<ListingCommand::Listings> Make(Context& context, const Tree& tree) {
  ListingCommand::Listings listings;
  listings.push_back(listing::ListLabels(driver::ConfiguredBy(*context.config), tree.components().all(),
                                         tree.nodes(), tree.requests(), tree.images(), context.loop.Now()));
  co_return listings;
}

}  // namespace

ListingCommand LabelListing() {
  return {.needs = {.nodes = true, .requests = true, .images = true, .components = true},
          .columns = listing::LabelColumns(),
          .make = [](Context& context, const Tree& tree) { return Make(context, tree); }};
}

void RegisterLabelList(CLI::App& app, Invocation& invocation) {
  AddListing(app, invocation, "label-list", "list labels with their pools, nodes and waiting requests",
             [](Output) { return LabelListing(); });
}

}  // namespace nodepool::cli
