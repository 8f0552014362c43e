#include "daemon/abbreviations.h"

#include <CLI/CLI.hpp>
#include <utility>

namespace nodepool::daemon {
namespace {

// The long options of `app` that begin so, or the one that is it.
std::vector<std::string> Matches(const CLI::App& app, const std::string& name) {
  std::vector<std::string> matches;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& known : option->get_lnames()) {
      std::string full = "--" + known;
      if (full == name) return {full};
      if (full.starts_with(name)) matches.push_back(full);
    }
  }
  return matches;
}

// Replaces a shortened long option by the only option that begins so, of `command` or else of
// `app`. Ambiguous and unknown ones are left for the parser to complain about.
std::string Unabbreviated(const CLI::App& command, const CLI::App& app, const std::string& argument) {
  std::string name = argument.substr(0, argument.find('='));
  std::vector<std::string> matches = Matches(command, name);
  if (matches.empty()) matches = Matches(app, name);
  return matches.size() == 1 ? matches.front() + argument.substr(name.size()) : argument;
}

bool TakesValue(const CLI::Option* option) { return option != nullptr && option->get_expected_min() > 0; }

// "-cFILE" and "--opt=value" carry their value.
const CLI::Option* OptionOf(const CLI::App& app, const std::string& argument) {
  if (const CLI::Option* whole = app.get_option_no_throw(argument)) return whole;
  bool is_long = argument.starts_with("--");
  return app.get_option_no_throw(is_long ? argument.substr(0, argument.find('=')) : argument.substr(0, 2));
}

}  // namespace

void ExpandAbbreviations(const CLI::App& app, std::vector<std::string>& arguments) {
  const CLI::App* current = &app;
  bool is_value = false;  // of the previous option
  for (std::string& argument : arguments) {
    if (std::exchange(is_value, false)) continue;
    if (argument == "--") return;
    if (argument.starts_with("--")) argument = Unabbreviated(*current, app, argument);
    if (argument.starts_with("-")) {
      is_value =
          TakesValue(current->get_option_no_throw(argument)) || TakesValue(app.get_option_no_throw(argument));
    } else if (current == &app) {
      for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
        if (command->get_name() == argument) current = command;
      }
    }
  }
}

std::size_t PlaceOfCommand(const CLI::App& app, const std::vector<std::string>& arguments) {
  for (std::size_t place = 0; place < arguments.size(); ++place) {
    const std::string& argument = arguments[place];
    if (!argument.starts_with("-")) return place;
    if (OptionOf(app, argument) == nullptr) return arguments.size();
    if (TakesValue(app.get_option_no_throw(argument))) ++place;
  }
  return arguments.size();
}

}  // namespace nodepool::daemon
