#include "cli/commands/provider_pause.h"

#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/commands/commands.h"
#include "cli/unknown_names.h"
#include "operate/providers.h"

namespace nodepool::cli {
namespace {

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

Task<int> PauseProvider(Context& context, ProviderName provider, std::optional<std::string> reason,
                        bool is_drained) {
  ProviderPause pause{std::move(reason), is_drained, context.user, std::nullopt, {}};
  operate::Done paused = co_await operate::PauseProvider(context.loop, context.store, *context.config,
                                                         std::move(provider), std::move(pause));
  if (paused) co_return 0;
  context.logger.Error("{}", paused.error().why);
  co_return 1;
}

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

void RegisterProviderPause(CLI::App& app, Invocation& invocation) {
  AddProviderPause(app, invocation);
  AddProviderUnpause(app, invocation);
}

}  // namespace nodepool::cli
