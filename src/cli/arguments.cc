#include "cli/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "base/version.h"
#include "cli/commands/commands.h"
#include "daemon/abbreviations.h"

namespace nodepool::cli {
namespace {

// Declares the tool's own options and all commands, which fill the invocation.
void Declare(CLI::App& app, Invocation& invocation) {
  app.set_version_flag("--version", fmt::format("Nodepool version: {}", nodepool::Version()));
  app.add_option("-c", invocation.config_path, "configuration file")
      ->type_name("FILE")
      ->capture_default_str();
  app.add_option("-s", invocation.secure_path, "secure file, merged into the configuration")
      ->type_name("FILE");
  app.add_option("-l", invocation.logging_path, "logging configuration file")->type_name("FILE");
  app.add_option("--drivers-dir", invocation.drivers_dirs,
                 "directory of drivers that are no part of the program; may be repeated")
      ->type_name("DIR")
      ->allow_extra_args(false);
  app.add_flag("--debug", invocation.is_debug, "log at DEBUG to standard error");
  app.require_subcommand(0, 1);
  app.failure_message([](const CLI::App* command, const CLI::Error& error) {
    return fmt::format("{}{}: error: {}\n", command->help(), command->get_name(), error.what());
  });
  for (RegisterCommand* declare : kCommands) declare(app, invocation);
}

constexpr const char* kName = "nodepool";
constexpr const char* kDescription = "Looks at nodes and requests, changes them, and asks for nodes.";

}  // namespace

void OnCommand(CLI::App& command, Invocation& invocation, std::function<Task<int>(Context&)> run) {
  command.callback([&invocation, run = std::move(run)] { invocation.command = run; });
}

void DescribeTool(const std::function<void(const CLI::App&)>& describe) {
  CLI::App app(kDescription, kName);
  Invocation invocation;
  Declare(app, invocation);
  describe(app);
}

std::variant<Invocation, int> ParseArguments(std::vector<std::string> arguments, std::ostream& out,
                                             std::ostream& err) {
  CLI::App app(kDescription, kName);
  Invocation invocation;
  Declare(app, invocation);
  daemon::ExpandAbbreviations(app, arguments);
  std::ranges::reverse(arguments);  // the order in which CLI11 takes them
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    return app.exit(error, out, err) == 0 ? 0 : 2;
  }
  if (app.get_subcommands().empty()) {
    out << app.help();
    return 1;
  }
  return invocation;
}

}  // namespace nodepool::cli
