#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json/serialize.hpp>

#include "cli/commands/commands.h"
#include "cli/listing_arguments.h"
#include "cli/show_listing.h"
#include "cli/unknown_names.h"
#include "driver/loading/configured.h"
#include "listing/image_health.h"
#include "listing/image_listing.h"
#include "listing/label_listing.h"
#include "listing/node_listing.h"
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
  return {.needs = {&Caches::images},
          .columns = std::move(columns),
          .make = [make](Context&, const Caches& caches) { return Done(make(caches.images)); }};
}

// `nodepool list [--detail]`: every node, by id (operations.md 5.4).
ListingCommand NodeListing(listing::NodeColumns columns) {
  auto make = [columns](Context&, const Caches& caches) {
    std::vector<const store::StoredNode*> nodes;
    for (const auto& [id, node] : caches.nodes.all()) nodes.push_back(&node);
    return Done(ListNodes(nodes, columns));
  };
  return {
      .needs = {&Caches::nodes}, .columns = ColumnsOf(columns), .is_filtered_by_record = true, .make = make};
}

// `nodepool provider-list`: every configured provider, and what launchers report about it (D-30).
ListingCommand ProviderListing() {
  auto make = [](Context& context, const Caches& caches) {
    return Done(listing::ListProviders(driver::ConfiguredBy(*context.config).drivers, caches.components.all(),
                                       caches.nodes, caches.pauses, caches.breakers));
  };
  return {.needs = {&Caches::nodes, &Caches::components, &Caches::pauses, &Caches::breakers},
          .columns = listing::ProviderColumns(),
          .make = make};
}

// `nodepool dib-image-list`, `image-list [--detail]` and `image-status`.
ListingCommand BuildListing() { return ImageListing(listing::BuildColumns(), &listing::ListBuilds); }

ListingCommand UploadListing(listing::UploadDetail detail) {
  auto make = [detail](Context&, const Caches& caches) { return Done(ListUploads(caches.images, detail)); };
  return {.needs = {&Caches::images}, .columns = listing::UploadColumns(detail), .make = make};
}

ListingCommand ImageStatusListing() {
  auto make = [](Context& context, const Caches& caches) {
    return Done(
        listing::ListImageHealth(caches.images, driver::ConfiguredBy(*context.config), context.loop.Now()));
  };
  return {.needs = {&Caches::images}, .columns = listing::ImageHealthColumns(), .make = make};
}

namespace json = boost::json;

Listing ImageRows(const store::ImageCache& images, const ProviderName& provider) {
  std::map<store::BuildKey, json::array> uploads;  // their ids, sorted
  for (const store::BuildKey& build : images.BuildsIn(provider)) uploads[build];
  for (const auto& [key, upload] : images.uploads()) {
    if (key.provider == provider) uploads[key.build].emplace_back(key.upload.value);
  }
  Listing listing{{{"image", "Image Name"}, {"build_id", "Build ID"}, {"upload_ids", "Upload IDs"}}, {}};
  for (auto& [build, ids] : uploads) {
    listing.rows.push_back({build.image.value, build.build.value, std::move(ids)});
  }
  return listing;
}

Listing NodeRows(const store::NodeCache& nodes, const ProviderName& provider) {
  Listing listing{{{"id", "ID"}, {"server_id", "Server ID"}}, {}};
  for (const NodeId& id : nodes.OfProvider(provider)) {
    listing.rows.push_back({id.value, Cell::Of(nodes.Find(id)->record.external_id)});
  }
  return listing;
}

Listing PauseRows(const store::RecordCache<ProviderPause>& pauses, const ProviderName& provider) {
  Listing listing{{{"paused_by", "Paused By"}, {"reason", "Reason"}, {"drain", "Drain"}}, {}};
  if (const ProviderPause* pause = pauses.Find(provider))
    listing.rows.push_back({Cell::OfText(pause->paused_by), TextCell(pause->reason), pause->is_drained});
  return listing;
}

Listing BreakerRows(const store::RecordCache<Breaker>& breakers, const ProviderName& provider) {
  Listing listing{{{"pool", "Pool"},
                   {"label", "Label"},
                   {"opened", "Opened", listing::Kind::kTime},
                   {"next_probe", "Next Probe", listing::Kind::kTime},
                   {"tried_anyway", "Tried Anyway"},
                   {"why", "Why"}},
                  {}};
  auto time = [](const std::optional<WallTime>& at) { return at ? Cell(ToSeconds(*at)) : Cell(); };
  for (const auto& [key, breaker] : breakers.all()) {
    if (key.provider != provider) continue;
    listing.rows.push_back({Cell(key.pool.value), Cell(key.label.value), time(breaker.opened),
                            time(breaker.next_probe), Cell(breaker.tried_anyway), Cell(EvidenceOf(breaker))});
  }
  return listing;
}

Task<Listings> MakeInfo(Context& context, ProviderName provider, const Caches& caches) {
  Listings listings;
  listings.push_back(ImageRows(caches.images, provider));
  listings.push_back(NodeRows(caches.nodes, provider));
  listings.push_back(PauseRows(caches.pauses, provider));
  listings.push_back(BreakerRows(caches.breakers, provider));
  bool is_known = IsConfigured(*context.config, provider) ||
                  !std::ranges::all_of(listings, &std::vector<std::vector<Cell>>::empty, &Listing::rows);
  if (!is_known) throw Error(Verdict::kNotFound, UnknownProvider(*context.config, provider));
  co_return listings;
}

std::string Layout(const ProviderName& provider, const Listings& listings, const Page& page) {
  std::string images = TextOf(listings[0], page), nodes = TextOf(listings[1], page);
  if (page.output == Output::kJson) {
    return fmt::format(R"({{"provider":{},"images":{},"nodes":{},"paused":{},"breakers":{}}})",
                       json::serialize(json::value(provider.value)), images, nodes, TextOf(listings[2], page),
                       TextOf(listings[3], page));
  }
  std::string text =
      fmt::format("ZooKeeper data for provider {}\n\nImage data:\n{}\n\nNodes:\n{}", provider, images, nodes);
  if (!listings[2].rows.empty()) text += "\n\nPaused:\n" + TextOf(listings[2], page);
  if (!listings[3].rows.empty()) text += "\n\nOpen breakers:\n" + TextOf(listings[3], page);
  return text;
}

// `nodepool info PROVIDER`: the records of one provider in ZooKeeper: the builds that it has or is to have,
// and its nodes. An unknown provider gives empty tables (operations.md 5.4).
ListingCommand InfoListing(ProviderName provider) {
  return {.needs = {&Caches::nodes, &Caches::images, &Caches::pauses, &Caches::breakers},
          .make = [provider](Context& context,
                             const Caches& caches) { return MakeInfo(context, provider, caches); },
          .layout = [provider](const Listings& listings,
                               const Page& page) { return Layout(provider, listings, page); }};
}

Task<ListingCommand::Listings> MakeLabels(Context& context, const Caches& caches) {
  ListingCommand::Listings listings;
  listings.push_back(listing::ListLabels(driver::ConfiguredBy(*context.config), caches.components.all(),
                                         caches.nodes, caches.requests, caches.images, context.loop.Now()));
  co_return listings;
}

// `nodepool label-list`: every label, the pools that offer it, its nodes and the requests that wait for it.
ListingCommand LabelListing() {
  return {.needs = {&Caches::nodes, &Caches::requests, &Caches::images, &Caches::components},
          .columns = listing::LabelColumns(),
          .make = [](Context& context, const Caches& caches) { return MakeLabels(context, caches); }};
}

}  // namespace

void RegisterNodeList(CLI::App& app, Invocation& invocation) {
  AddDetailedListing(app, invocation, "list", "list nodes", "show all columns", [](Output, bool is_detailed) {
    return NodeListing(is_detailed ? listing::NodeColumns::kDetail : listing::NodeColumns::kBrief);
  });
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
  AddDetailedListing(
      app, invocation, "image-list", "list uploads of images",
      "also show formats, and how far uploads have come", [](Output, bool is_detailed) {
        return UploadListing(is_detailed ? listing::UploadDetail::kDetail : listing::UploadDetail::kBrief);
      });
  add("image-status", "show which images are paused or asked for, and how they are", &ImageStatusListing);
}

void RegisterInfo(CLI::App& app, Invocation& invocation) {
  auto provider = std::make_shared<std::string>();
  auto make = [provider](Output) { return InfoListing(ProviderName(*provider)); };
  AddListing(app, invocation, "info", "show what ZooKeeper knows about a provider", make)
      ->add_option("PROVIDER", *provider, "name of the provider")
      ->required()
      ->type_name("");
}

void RegisterLabelList(CLI::App& app, Invocation& invocation) {
  AddListing(app, invocation, "label-list", "list labels with their pools, nodes and waiting requests",
             [](Output) { return LabelListing(); });
}

}  // namespace nodepool::cli
