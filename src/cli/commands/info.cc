#include "cli/commands/info.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json/serialize.hpp>

#include "cli/commands/commands.h"
#include "cli/listing_arguments.h"
#include "cli/unknown_names.h"

namespace nodepool::cli {
namespace {

namespace json = boost::json;
using listing::Listing;
using Listings = ListingCommand::Listings;

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

Listing PauseRows(const store::PauseCache& pauses, const ProviderName& provider) {
  Listing listing{{{"paused_by", "Paused By"}, {"reason", "Reason"}, {"drain", "Drain"}}, {}};
  if (const ProviderPause* pause = pauses.Find(provider))
    listing.rows.push_back({Cell::OfText(pause->paused_by), TextCell(pause->reason), pause->is_drained});
  return listing;
}

Task<Listings> MakeInfo(Context& context, ProviderName provider, const Tree& tree) {
  Listings listings;
  listings.push_back(ImageRows(tree.images(), provider));
  listings.push_back(NodeRows(tree.nodes(), provider));
  listings.push_back(PauseRows(tree.pauses(), provider));
  bool is_known = IsConfigured(*context.config, provider) ||
                  !std::ranges::all_of(listings, &std::vector<std::vector<Cell>>::empty, &Listing::rows);
  if (!is_known) throw Error(Verdict::kNotFound, UnknownProvider(*context.config, provider));
  co_return listings;
}

std::string Layout(const ProviderName& provider, const Listings& listings, const Page& page) {
  std::string images = TextOf(listings[0], page), nodes = TextOf(listings[1], page);
  if (page.output == Output::kJson) {
    return fmt::format(R"({{"provider":{},"images":{},"nodes":{},"paused":{}}})",
                       json::serialize(json::value(provider.value)), images, nodes,
                       TextOf(listings[2], page));
  }
  std::string text =
      fmt::format("ZooKeeper data for provider {}\n\nImage data:\n{}\n\nNodes:\n{}", provider, images, nodes);
  if (!listings[2].rows.empty()) text += "\n\nPaused:\n" + TextOf(listings[2], page);
  return text;
}

}  // namespace

ListingCommand InfoListing(ProviderName provider) {
  return {
      .needs = {.nodes = true, .images = true, .pauses = true},
      .make = [provider](Context& context, const Tree& tree) { return MakeInfo(context, provider, tree); },
      .layout = [provider](const Listings& listings,
                           const Page& page) { return Layout(provider, listings, page); }};
}

void RegisterInfo(CLI::App& app, Invocation& invocation) {
  auto provider = std::make_shared<std::string>();
  auto make = [provider](Output) { return InfoListing(ProviderName(*provider)); };
  AddListing(app, invocation, "info", "show what ZooKeeper knows about a provider", make)
      ->add_option("PROVIDER", *provider, "name of the provider")
      ->required()
      ->type_name("");
}

}  // namespace nodepool::cli
