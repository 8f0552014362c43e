#include "daemon/abbreviations.h"

#include <CLI/CLI.hpp>
#include <utility>

namespace nodepool::daemon {
namespace {

// Replaces a shortened long option by the only option of `app` that begins with it. Leaves ambiguous and
// unknown ones for the parser to report.
std::string Unabbreviated(const CLI::App& app, const std::string& argument) {
  std::string name = argument.substr(0, argument.find('='));
  std::vector<std::string> matches;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& known : option->get_lnames()) {
      std::string full = "--" + known;
      if (full == name) return argument;
      if (full.starts_with(name)) matches.push_back(full);
    }
  }
  return matches.size() == 1 ? matches.front() + argument.substr(name.size()) : argument;
}

}  // namespace

void ExpandAbbreviations(const CLI::App& app, std::vector<std::string>& arguments) {
  const CLI::App* current = &app;
  bool is_value = false;  // of the previous option
  for (std::string& argument : arguments) {
    if (std::exchange(is_value, false)) continue;
    if (argument == "--") return;
    if (argument.starts_with("--")) argument = Unabbreviated(*current, argument);
    if (argument.starts_with("-")) {
      const CLI::Option* option = current->get_option_no_throw(argument);
      is_value = option && option->get_expected_min() > 0;
    } else if (current == &app) {
      for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
        if (command->get_name() == argument) current = command;
      }
    }
  }
}

}  // namespace nodepool::daemon
