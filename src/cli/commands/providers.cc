#include "operate/providers.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <ostream>
#include <string>

#include "cli/command.h"
#include "cli/commands/commands.h"
#include "cli/unknown_names.h"
#include "store/erase.h"

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

}  // namespace nodepool::cli
