#include "cli/commands/erase.h"

#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/commands/commands.h"
#include "cli/unknown_names.h"
#include "store/erase.h"

namespace nodepool::cli {

namespace {

// There is nothing to erase, which is a fault only of a name that nobody knows.
int ReportNothing(Context& context, const ProviderName& provider) {
  if (!IsConfigured(*context.config, provider)) {
    context.logger.Error("{}", UnknownProvider(*context.config, provider));
    return 1;
  }
  context.out << "There are no records of provider " << provider.value << '\n';
  return 0;
}

}  // namespace

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
