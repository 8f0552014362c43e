#include "daemon/abbreviations.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "base/text.h"

namespace nodepool::daemon {
namespace {

std::vector<std::string> LongNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string NameIn(const std::string& argument) { return argument.substr(0, argument.find('=')); }

// The long options of `app` that begin so, or the one that is it.
std::vector<std::string> Matches(const CLI::App& app, const std::string& name) {
  std::vector<std::string> matches;
  for (const std::string& full : LongNames(app)) {
    if (full == name) return {full};
    if (full.starts_with(name)) matches.push_back(full);
  }
  return matches;
}

// What the name of a long option may mean: options of `command`, or else of `app`.
std::vector<std::string> MeaningsOf(const CLI::App& command, const CLI::App& app, const std::string& name) {
  std::vector<std::string> matches = Matches(command, name);
  return matches.empty() ? Matches(app, name) : matches;
}

std::string Unabbreviated(const CLI::App& command, const CLI::App& app, const std::string& argument) {
  std::string name = NameIn(argument);
  std::vector<std::string> matches = MeaningsOf(command, app, name);
  return matches.size() == 1 ? matches.front() + argument.substr(name.size()) : argument;
}

bool TakesValue(const CLI::Option* option) { return option != nullptr && option->get_expected_min() > 0; }

// "-cFILE" and "--opt=value" carry their value.
const CLI::Option* OptionOf(const CLI::App& app, const std::string& argument) {
  if (const CLI::Option* whole = app.get_option_no_throw(argument)) return whole;
  return app.get_option_no_throw(argument.starts_with("--") ? NameIn(argument) : argument.substr(0, 2));
}

std::vector<const CLI::App*> CommandsOf(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// Calls `see` with each option of the arguments, but for values, and with the command it is for: `app` before
// the subcommand. Until `see` returns false.
template <class Arguments, class See>
void ForEachOption(const CLI::App& app, Arguments& arguments, See see) {
  const CLI::App* current = &app;
  bool is_value = false;  // of the previous option
  for (auto& argument : arguments) {
    if (std::exchange(is_value, false)) continue;
    if (argument == "--") return;
    if (argument.starts_with("-")) {
      if (!see(*current, argument)) return;
      is_value =
          TakesValue(current->get_option_no_throw(argument)) || TakesValue(app.get_option_no_throw(argument));
    } else if (current == &app) {
      for (const CLI::App* command : CommandsOf(app)) {
        if (command->get_name() == argument) current = command;
      }
    }
  }
}

std::string FaultOfOption(const CLI::App& command, const CLI::App& app, const std::string& name) {
  std::vector<std::string> meanings = MeaningsOf(command, app, name);
  if (!meanings.empty()) return fmt::format("{} may mean {}", Excerpt(name), Join(meanings, " or "));
  std::vector<std::string> names = LongNames(command), general = LongNames(app);
  names.insert(names.end(), general.begin(), general.end());
  std::optional<std::string> nearest = name.starts_with("--") ? NearestSpelling(name, names) : std::nullopt;
  if (nearest) return fmt::format("there is no option {}; did you mean {}?", Excerpt(name), *nearest);
  for (const CLI::App* other : CommandsOf(app)) {
    if (&command == &app && other->get_option_no_throw(name) != nullptr)
      return fmt::format("{} belongs behind its command", Excerpt(name));
  }
  return fmt::format("there is no option {}", Excerpt(name));
}

}  // namespace

void ExpandAbbreviations(const CLI::App& app, std::vector<std::string>& arguments) {
  ForEachOption(app, arguments, [&](const CLI::App& command, std::string& argument) {
    if (argument.starts_with("--")) argument = Unabbreviated(command, app, argument);
    return true;
  });
}

std::optional<std::string> FaultOfOptions(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::optional<std::string> fault;
  ForEachOption(app, arguments, [&](const CLI::App& command, const std::string& argument) {
    bool is_known =
        argument == "-" || OptionOf(command, argument) != nullptr || OptionOf(app, argument) != nullptr;
    if (!is_known) fault = FaultOfOption(command, app, NameIn(argument));
    return is_known;
  });
  return fault;
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
