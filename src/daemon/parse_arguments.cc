#include "daemon/parse_arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/text.h"
#include "daemon/abbreviations.h"

namespace nodepool::daemon {
namespace {

// "nodepool list", or the program alone if the arguments name no command of it.
std::string CommandIn(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::size_t place = PlaceOfCommand(app, arguments);
  if (place == arguments.size()) return app.get_name();
  auto is_meant = [&](const CLI::App* command) { return command->get_name() == arguments[place]; };
  bool is_command = !app.get_subcommands(is_meant).empty();
  return is_command ? fmt::format("{} {}", app.get_name(), arguments[place]) : app.get_name();
}

std::string ExtraArguments(const CLI::App& app) {
  std::vector<std::string> extras;
  for (const std::string& extra : app.remaining(true)) extras.push_back(Excerpt(extra));
  return fmt::format("not expected: {}", Join(extras, " "));
}

}  // namespace

UsageError UsageErrorIn(const CLI::App& app, const std::vector<std::string>& arguments,
                        const std::string& fault) {
  std::string command = CommandIn(app, arguments);
  bool is_solved = fault.ends_with('?');
  return UsageError(is_solved ? fmt::format("{}: {}", command, fault)
                              : fmt::format("{}: {}; see {} --help", command, fault, command));
}

void ParseArguments(CLI::App& app, std::vector<std::string> arguments) {
  ExpandAbbreviations(app, arguments);
  if (std::optional<std::string> fault = FaultOfOptions(app, arguments))
    throw UsageErrorIn(app, arguments, *fault);
  try {
    app.parse(
        std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // the order that CLI11 expects
  } catch (const CLI::Success&) {
    throw;
  } catch (const CLI::ExtrasError&) {
    throw UsageErrorIn(app, arguments, ExtraArguments(app));
  } catch (const CLI::ParseError& error) {
    throw UsageErrorIn(app, arguments, Visible(error.what()));
  }
}

}  // namespace nodepool::daemon
