#include "cli/commands/help.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "cli/commands/commands.h"

namespace nodepool::cli {

void RegisterHelp(CLI::App& app, Invocation&) {
  static std::string ignored;
  std::vector<std::string> names;
  auto is_shown = [](const CLI::App* command) { return !command->get_group().empty(); };
  for (const CLI::App* command : app.get_subcommands(is_shown)) names.push_back(command->get_name());
  app.add_subcommand(kHelpCommand, "show what a command takes")
      ->add_option("COMMAND", ignored, "name of the command; without it, the commands are listed")
      ->type_name(fmt::format("COMMAND:{{{}}}", Join(names, ",")));
}

}  // namespace nodepool::cli
