#include "cli/commands/record_listings.h"

#include <CLI/CLI.hpp>

#include "cli/commands/commands.h"
#include "cli/listing_arguments.h"
#include "driver/loading/configured.h"
#include "listing/image_health.h"
#include "listing/image_listing.h"
#include "listing/provider_listing.h"

namespace nodepool::cli {
namespace {

using listing::Listing;
using Listings = ListingCommand::Listings;

Task<Listings> Done(Listing listing) {
  Listings listings;
  listings.push_back(std::move(listing));
  co_return listings;
}

ListingCommand ImageListing(std::vector<listing::Column> columns, Listing (*make)(const store::ImageCache&)) {
  return {.needs = {.images = true},
          .columns = std::move(columns),
          .make = [make](Context&, const Tree& tree) { return Done(make(tree.images())); }};
}

}  // namespace

ListingCommand NodeListing(listing::NodeColumns columns) {
  auto make = [columns](Context&, const Tree& tree) {
    std::vector<const store::StoredNode*> nodes;
    for (const auto& [id, node] : tree.nodes().all()) nodes.push_back(&node);
    return Done(ListNodes(nodes, columns));
  };
  return {.needs = {.nodes = true}, .columns = ColumnsOf(columns), .make = make};
}

ListingCommand ProviderListing() {
  auto make = [](Context& context, const Tree& tree) {
    return Done(listing::ListProviders(driver::ConfiguredBy(*context.config).drivers, tree.components().all(),
                                       tree.nodes(), tree.pauses()));
  };
  return {.needs = {.nodes = true, .components = true, .pauses = true},
          .columns = listing::ProviderColumns(),
          .make = make};
}

ListingCommand BuildListing() { return ImageListing(listing::BuildColumns(), &listing::ListBuilds); }
ListingCommand UploadListing(listing::UploadDetail detail) {
  auto make = [detail](Context&, const Tree& tree) { return Done(ListUploads(tree.images(), detail)); };
  return {.needs = {.images = true}, .columns = listing::UploadColumns(detail), .make = make};
}
ListingCommand ImageStatusListing() {
  auto make = [](Context& context, const Tree& tree) {
    return Done(
        listing::ListImageHealth(tree.images(), driver::ConfiguredBy(*context.config), context.loop.Now()));
  };
  return {.needs = {.images = true}, .columns = listing::ImageHealthColumns(), .make = make};
}

void RegisterNodeList(CLI::App& app, Invocation& invocation) {
  auto is_detailed = std::make_shared<bool>(false);
  auto make = [is_detailed](Output) {
    return NodeListing(*is_detailed ? listing::NodeColumns::kDetail : listing::NodeColumns::kBrief);
  };
  AddListing(app, invocation, "list", "list nodes", make)
      ->add_flag("--detail", *is_detailed, "show all columns");
}

void RegisterProviderList(CLI::App& app, Invocation& invocation) {
  AddListing(app, invocation, "provider-list", "list providers and how their launchers say they are",
             [](Output) { return ProviderListing(); });
}

void RegisterImageListings(CLI::App& app, Invocation& invocation) {
  auto add = [&](const char* name, const char* help, ListingCommand (*make)()) {
    AddListing(app, invocation, name, help, [make](Output) { return make(); });
  };
  add("dib-image-list", "list builds of images", &BuildListing);
  auto is_detailed = std::make_shared<bool>(false);
  auto make = [is_detailed](Output) {
    return UploadListing(*is_detailed ? listing::UploadDetail::kDetail : listing::UploadDetail::kBrief);
  };
  AddListing(app, invocation, "image-list", "list uploads of images", make)
      ->add_flag("--detail", *is_detailed, "also show formats, and how far uploads have come");
  add("image-status", "show which images are paused or asked for, and how they are", &ImageStatusListing);
}

}  // namespace nodepool::cli
