#include <CLI/CLI.hpp>
#include <optional>
#include <ostream>
#include <set>
#include <string>

#include "async/deadline.h"
#include "async/task.h"
#include "cli/command.h"
#include "cli/commands/commands.h"
#include "cli/show_listing.h"
#include "operate/actions.h"
#include "store/whole_tree.h"

namespace nodepool::cli {

namespace {

// `nodepool provider-pause PROVIDER [--reason TEXT] [--drain]` (http-actions.md 1): every launcher stops to
// take requests for the provider; with `is_drained` its unused nodes are deleted, too. Status 1: no such
// provider is configured.
Task<int> PauseProvider(Context& context, ProviderName provider, std::optional<std::string> reason,
                        bool is_drained) {
  ProviderPause pause{std::move(reason), is_drained, context.user, std::nullopt, {}};
  operate::Done paused = co_await operate::PauseProvider(context.loop, context.store, *context.config,
                                                         std::move(provider), std::move(pause));
  if (paused) co_return 0;
  context.logger.Error("{}", paused.error().why);
  co_return 1;
}

// `nodepool provider-unpause PROVIDER`, also of a provider that is not configured any more. One that is not
// paused is only reported.
Task<int> UnpauseProvider(Context& context, ProviderName provider) {
  operate::Done unpaused = co_await operate::UnpauseProvider(context.store, provider);
  if (unpaused) co_return 0;
  if (!IsConfigured(*context.config, provider)) {
    context.logger.Error("{}", UnknownProvider(*context.config, provider));
    co_return 1;
  }
  context.out << unpaused.error().why << '\n';
  co_return 0;
}

// There is nothing to erase, which is a fault only of a name that nobody knows.
int ReportNothing(Context& context, const ProviderName& provider) {
  if (!IsConfigured(*context.config, provider)) {
    context.logger.Error("{}", UnknownProvider(*context.config, provider));
    return 1;
  }
  context.out << "There are no records of provider " << provider.value << '\n';
  return 0;
}

// `nodepool erase PROVIDER [--force]`: removes the records of a provider's uploads and nodes from ZooKeeper,
// after a confirmation unless forced (operations.md 5.8). Changes nothing in the cloud.
Task<int> Erase(Context& context, ProviderName provider, bool is_forced) {
  std::vector<NodeId> nodes = co_await store::NodesOf(context.store, provider);
  std::vector<store::BuildKey> builds = co_await store::BuildsWith(context.store, provider);
  if (nodes.empty() && builds.empty()) co_return ReportNothing(context, provider);
  if (!is_forced) {
    context.out << "\nWARNING! This action is not reversible!\nErase ZooKeeper data for provider "
                << provider.value << "? [N/y] " << std::flush;
    std::string answer = co_await context.read_line();
    if (answer != "y" && answer != "Y") {
      context.out << "Aborting. No data erased.\n";
      co_return 0;
    }
  }
  context.out << "Erasing build data for " << provider.value << "...\n" << std::flush;
  co_await store::EraseUploads(context.store, provider);
  context.out << "Erasing node data for " << provider.value << "...\n" << std::flush;
  WallTime now = context.loop.Now();
  for (const NodeId& id : nodes) co_await store::EraseNode(context.store, id, now);
  co_return 0;
}

void AddProviderPause(CLI::App& app, Invocation& invocation) {
  struct Values {
    std::string provider;
    std::optional<std::string> reason;
    bool is_drained = false;
  };
  auto values = std::make_shared<Values>();
  CLI::App* command =
      app.add_subcommand("provider-pause", "take no requests and launch nothing in a provider for now");
  command->add_option("PROVIDER", values->provider, "name of the provider")->required()->type_name("");
  command->add_option("--reason", values->reason, "why, for people")
      ->check(&RefuseBadReason)
      ->type_name("TEXT");
  command->add_flag("--drain", values->is_drained, "delete its unused nodes, too");
  OnCommand(*command, invocation, [values](Context& context) {
    return PauseProvider(context, ProviderName(values->provider), values->reason, values->is_drained);
  });
}

void AddProviderUnpause(CLI::App& app, Invocation& invocation) {
  auto provider = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("provider-unpause", "use a paused provider again");
  command->add_option("PROVIDER", *provider, "name of the provider")->required()->type_name("");
  OnCommand(*command, invocation,
            [provider](Context& context) { return UnpauseProvider(context, ProviderName(*provider)); });
}

}  // namespace

void RegisterProviderPause(CLI::App& app, Invocation& invocation) {
  AddProviderPause(app, invocation);
  AddProviderUnpause(app, invocation);
}

void RegisterErase(CLI::App& app, Invocation& invocation) {
  struct Values {
    std::string provider;
    bool is_forced = false;
  };
  auto values = std::make_shared<Values>();
  CLI::App* command =
      app.add_subcommand("erase", "remove the records of a provider's uploads and nodes, also locked ones");
  command->add_option("PROVIDER", values->provider, "name of the provider")->required()->type_name("");
  command->add_flag("--force", values->is_forced, "do not ask");
  OnCommand(*command, invocation, [values](Context& context) {
    return Erase(context, ProviderName(values->provider), values->is_forced);
  });
}

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
