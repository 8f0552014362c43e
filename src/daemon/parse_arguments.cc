#include "daemon/parse_arguments.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace nodepool::daemon {

namespace {

std::optional<std::string> HomeOf(const std::string& user) {
  if (const char* home = std::getenv("HOME"); user.empty() && home != nullptr) return home;
  const passwd* entry = user.empty() ? ::getpwuid(::getuid()) : ::getpwnam(user.c_str());
  if (entry == nullptr) return std::nullopt;
  return entry->pw_dir;
}

}  // namespace

std::string ExpandHome(const std::string& path) {
  if (!path.starts_with('~')) return path;
  std::size_t end = std::min(path.find('/'), path.size());
  std::optional<std::string> home = HomeOf(path.substr(1, end - 1));
  if (!home) return path;
  while (home->ends_with('/')) home->pop_back();
  std::string expanded = *home + path.substr(end);
  return expanded.empty() ? "/" : expanded;
}

void RequireConfig(const std::string& path) {
  std::error_code error;
  bool is_missing =
      std::filesystem::status(ExpandHome(path), error).type() == std::filesystem::file_type::not_found;
  if (!is_missing) return;
  throw Error(
      Verdict::kInvalid,
      fmt::format("no configuration: {} does not exist; name one with -c FILE or {}", path, kConfigVariable));
}

namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kNames = 26;  // columns in front of the help

// The words in lines of at most `width` columns, the second and later ones indented.
std::string Wrapped(const std::string& text, std::size_t width, std::size_t indent) {
  std::string result;
  std::size_t column = 0;
  for (const std::string& word : Split(text, ' ')) {
    if (column > 0 && column + 1 + word.size() > width) {
      result += "\n" + std::string(indent, ' ');
      column = 0;
    }
    if (column > 0) result += ' ';
    result += word;
    column += word.size() + (column > 0 ? 1 : 0);
  }
  return result;
}

std::string Entry(const std::string& name, const std::string& help) {
  std::string line = "  " + name;
  line += line.size() + 2 > kNames ? "\n" + std::string(kNames, ' ') : std::string(kNames - line.size(), ' ');
  return line + Wrapped(help, kWidth - kNames, kNames) + "\n";
}

// "-d, --debug"
std::string NamesOf(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return Join(names, ", ");
}

// CLI11 writes type and checks as "TYPE:CHECK", choices as "{a,b}".
std::string TypeOf(const CLI::Option& option) {
  std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

std::string ValueOf(const CLI::Option& option) {
  bool is_flag = option.get_expected_max() == 0;
  std::string type = TypeOf(option);
  if (is_flag || type.empty()) return "";
  return option.get_expected_min() == 0 ? " [" + type + "]" : " " + type;
}

std::string HelpOf(const CLI::Option& option) {
  std::string help = option.get_description();
  bool has_default = option.get_expected_max() > 0 && !option.get_default_str().empty();
  if (has_default) help += fmt::format(" (default: {})", option.get_default_str());
  return help;
}

class Format : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string name = is_positional ? NameOfPositional(*option) : NamesOf(*option) + ValueOf(*option);
    return Entry(name, HelpOf(*option));
  }
  std::string make_option_usage(const CLI::Option* positional) const override {
    std::string name = NameOfPositional(*positional);
    bool is_repeated = positional->get_expected_max() > 1 && name.find(' ') == std::string::npos;
    if (is_repeated) name += "...";
    return positional->get_required() ? name : "[" + name + "]";
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return Entry(command->get_name(), command->get_description());
  }
  std::string make_description(const CLI::App* app) const override {
    return Wrapped(app->get_description(), kWidth, 0) + "\n";
  }
};

}  // namespace

std::string NameOfPositional(const CLI::Option& option) {
  std::string type = TypeOf(option);
  return type.empty() ? option.get_name(true) : type;
}

std::shared_ptr<CLI::FormatterBase> HelpFormat() {
  auto format = std::make_shared<Format>();
  format->label("SUBCOMMAND", "COMMAND");
  return format;
}

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
