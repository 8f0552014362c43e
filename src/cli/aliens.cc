#include "cli/aliens.h"

#include <set>

#include "async/deadline.h"

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

Task<> Ask(driver::Provider& provider, Kind kind, Clouds& found) {
  if (kind == Kind::kMachines) {
    found.machines = co_await provider.ListMachines();
  } else {
    found.images = co_await provider.ListImages();
  }
}

// Empty, after a warning, when the cloud cannot be asked.
Task<Clouds> AskProvider(Context& context, ProviderName name, Kind kind) {
  Clouds found;
  std::unique_ptr<driver::Provider> provider = context.make_provider(name);
  SteadyTime deadline = context.loop.SteadyNow() + kLimit;
  std::exception_ptr error;
  try {
    co_await WithDeadline(context.loop, deadline, "listing", Ask(*provider, kind, found));
  } catch (...) {
    error = std::current_exception();
  }
  co_await IgnoreCancellation();
  co_await provider->Stop();
  if (error && VerdictOf(error) == Verdict::kCancelled) std::rethrow_exception(error);
  if (error) {
    context.logger.Warning("Exception listing {} for {}: {}",
                           kind == Kind::kImages ? "alien images" : "aliens", name, MessageOf(error));
  }
  co_return found;
}

std::vector<ProviderName> ProvidersToAsk(const Context& context, const std::optional<ProviderName>& only) {
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

// What the nodes of the provider name.
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

Task<Listings> ListMachines(Context& context, const Tree& tree, std::optional<ProviderName> provider,
                            bool only_marked) {
  Listings listings(1);
  listings[0].columns = MachineColumns();
  for (const ProviderName& asked : ProvidersToAsk(context, provider)) {
    ProviderName name = asked;
    Clouds found = co_await AskProvider(context, name, Kind::kMachines);
    std::set<std::string> known = KnownMachines(tree.nodes(), name);
    for (const driver::ListedMachine& machine : found.machines) {
      if (known.contains(machine.id) || (only_marked && !machine.metadata.contains(kMark))) continue;
      listings[0].rows.push_back({name.value, machine.name, machine.id, machine.address});
    }
  }
  co_return listings;
}

Task<Listings> ListImages(Context& context, const Tree& tree, std::optional<ProviderName> provider) {
  Listings listings(1);
  listings[0].columns = ImageColumns();
  for (const ProviderName& asked : ProvidersToAsk(context, provider)) {
    ProviderName name = asked;
    Clouds found = co_await AskProvider(context, name, Kind::kImages);
    std::set<std::string> known = ReadyUploads(tree.images())[name];
    for (const driver::ListedImage& image : found.images) {
      if (!known.contains(image.id)) listings[0].rows.push_back({name.value, image.name, image.id});
    }
  }
  co_return listings;
}

}  // namespace

ListingCommand AlienListing(std::optional<ProviderName> provider, bool only_marked) {
  return {.needs = {.nodes = true},
          .columns = MachineColumns(),
          .make = [provider, only_marked](
                      Context& context,
                      const Tree& tree) { return ListMachines(context, tree, provider, only_marked); },
          .can_be_watched = false};
}

ListingCommand AlienImageListing(std::optional<ProviderName> provider) {
  return {
      .needs = {.images = true},
      .columns = ImageColumns(),
      .make = [provider](Context& context, const Tree& tree) { return ListImages(context, tree, provider); },
      .can_be_watched = false};
}

}  // namespace nodepool::cli
