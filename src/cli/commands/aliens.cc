#include <CLI/CLI.hpp>
#include <optional>
#include <set>

#include "async/cleanup.h"
#include "async/deadline.h"
#include "cli/commands/commands.h"
#include "cli/listing_arguments.h"
#include "cli/show_listing.h"
#include "cli/unknown_names.h"

namespace nodepool::cli {

namespace {

namespace json = boost::json;
using Listings = ListingCommand::Listings;

constexpr Duration kLimit = std::chrono::minutes(2);
constexpr const char* kMark = "nodepool_provider_name";

struct Clouds {
  std::vector<driver::ListedMachine> machines;
  std::vector<driver::ListedImage> images;
};

enum class Kind { kMachines, kImages };

Task<Clouds> Ask(driver::OperatorTools& tools, Kind kind) {
  Clouds found;
  if (kind == Kind::kMachines) {
    found.machines = co_await tools.ListMachines();
  } else {
    found.images = co_await tools.ListImages();
  }
  co_return found;
}

// Empty, after a warning, if the cloud cannot be queried.
Task<Clouds> AskProvider(Context& context, ProviderName name, Kind kind) {
  std::unique_ptr<driver::OperatorTools> tools = context.make_tools(name);
  SteadyTime deadline = context.loop.SteadyNow() + kLimit;
  auto stop = [&tools] { return tools->Stop(); };
  Task<Clouds> listing = WithDeadline(context.loop, deadline, "listing", Ask(*tools, kind));
  Outcome<Clouds> found = co_await WithCleanup(Attempt(std::move(listing)), stop);
  if (found) co_return std::move(*found);
  context.logger.Warning("Exception listing {} for {}: {}", kind == Kind::kImages ? "alien images" : "aliens",
                         name, found.error().message());
  co_return Clouds();
}

std::vector<ProviderName> ProvidersToAsk(const Context& context, const std::optional<ProviderName>& only) {
  if (only && !IsConfigured(*context.config, *only))
    throw Error(Verdict::kNotFound, UnknownProvider(*context.config, *only));
  std::vector<ProviderName> names;
  for (const auto& [name, config] : context.config->providers) {
    bool is_wanted = only ? name == *only : true;
    if (is_wanted) names.push_back(name);
  }
  return names;
}

// The ids of the ready uploads, by provider.
std::map<ProviderName, std::set<std::string>> ReadyUploads(const store::ImageCache& images) {
  std::map<ProviderName, std::set<std::string>> ids;
  for (const auto& [key, upload] : images.uploads()) {
    if (upload.record.state == ImageState::kReady)
      ids[key.provider].insert(upload.record.external_id.value_or(""));
  }
  return ids;
}

// The machines that the provider's nodes name.
std::set<std::string> KnownMachines(const store::NodeCache& nodes, const ProviderName& provider) {
  std::set<std::string> known;
  for (const NodeId& id : nodes.OfProvider(provider)) {
    const json::value& external_id = nodes.Find(id)->record.external_id;
    if (external_id.is_string()) known.emplace(external_id.get_string());
  }
  return known;
}

std::vector<listing::Column> MachineColumns() {
  return {{"provider", "Provider", listing::Kind::kProvider},
          {"hostname", "Hostname"},
          {"server_id", "Server ID"},
          {"public_ipv4", "IP"}};
}

std::vector<listing::Column> ImageColumns() {
  return {{"provider", "Provider", listing::Kind::kProvider}, {"name", "Name"}, {"image_id", "Image ID"}};
}

Task<Listings> ListMachines(Context& context, const Caches& caches, std::optional<ProviderName> provider,
                            bool only_marked) {
  Listings listings(1);
  listings[0].columns = MachineColumns();
  for (const ProviderName& asked : ProvidersToAsk(context, provider)) {
    ProviderName name = asked;
    Clouds found = co_await AskProvider(context, name, Kind::kMachines);
    std::set<std::string> known = KnownMachines(caches.nodes, name);
    for (const driver::ListedMachine& machine : found.machines) {
      if (known.contains(machine.id) || (only_marked && !machine.metadata.contains(kMark))) continue;
      listings[0].rows.push_back({name.value, machine.name, machine.id, machine.address});
    }
  }
  co_return listings;
}

Task<Listings> ListImages(Context& context, const Caches& caches, std::optional<ProviderName> provider) {
  Listings listings(1);
  listings[0].columns = ImageColumns();
  for (const ProviderName& asked : ProvidersToAsk(context, provider)) {
    ProviderName name = asked;
    Clouds found = co_await AskProvider(context, name, Kind::kImages);
    std::set<std::string> known = ReadyUploads(caches.images)[name];
    for (const driver::ListedImage& image : found.images) {
      if (!known.contains(image.id)) listings[0].rows.push_back({name.value, image.name, image.id});
    }
  }
  co_return listings;
}

// Lists machines in the clouds of all providers, or of one, that no node of that provider names
// (operations.md 13.4). `only_marked`: only those with Nodepool's metadata (D-68). A cloud that cannot be
// queried is a warning.
ListingCommand AlienListing(std::optional<ProviderName> provider, bool only_marked) {
  return {.needs = {&Caches::nodes},
          .columns = MachineColumns(),
          .make = [provider, only_marked](
                      Context& context,
                      const Caches& caches) { return ListMachines(context, caches, provider, only_marked); },
          .can_be_watched = false};
}

// Lists images that Nodepool made and that are not ready uploads (operations.md 5.7).
ListingCommand AlienImageListing(std::optional<ProviderName> provider) {
  return {.needs = {&Caches::images},
          .columns = ImageColumns(),
          .make = [provider](Context& context,
                             const Caches& caches) { return ListImages(context, caches, provider); },
          .can_be_watched = false};
}

}  // namespace

void RegisterAliens(CLI::App& app, Invocation& invocation) {
  struct Values {
    std::string provider;
    bool is_marked = false;

    std::optional<ProviderName> only() const {
      return provider.empty() ? std::nullopt : std::optional(ProviderName(provider));
    }
  };
  auto values = std::make_shared<Values>();
  auto list_machines = [values](Output) { return AlienListing(values->only(), values->is_marked); };
  auto list_images = [values](Output) { return AlienImageListing(values->only()); };
  CLI::App* machines =
      AddListing(app, invocation, "alien-list", "list machines in clouds that no node names", list_machines);
  machines->add_option("PROVIDER", values->provider, "only this provider")->type_name("");
  machines->add_flag("--nodepool-metadata", values->is_marked, "only those that carry the mark of Nodepool");
  CLI::App* images = AddListing(app, invocation, "alien-image-list",
                                "list images in clouds that are no upload of ours", list_images);
  images->add_option("PROVIDER", values->provider, "only this provider")->type_name("");
}

}  // namespace nodepool::cli
