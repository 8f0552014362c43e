#include "cli/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <ostream>

#include "base/text.h"
#include "base/version.h"
#include "cli/commands/commands.h"
#include "daemon/abbreviations.h"
#include "daemon/help_format.h"
#include "daemon/parse_arguments.h"

namespace nodepool::cli {

namespace {

constexpr const char* kName = "nodepool";
constexpr const char* kDescription = "Shows nodes and requests, changes them, and asks for nodes.";
constexpr const char* kExamples = R"(Examples:
  nodepool list --state ready --watch
  nodepool request LABEL --wait

The options above may also be behind the command. nodepool help COMMAND says
what a command takes.)";
constexpr const char* kCommandFooter = "nodepool --help shows the options that every command takes.";
constexpr const char* kServerWait = "--wait-for-server";
constexpr const char* kForever = "forever";

void AddServerWait(CLI::App& app, Invocation& invocation) {
  auto text = std::make_shared<std::string>();
  app.add_flag(kServerWait + std::string("{") + kForever + "}", *text,
               "wait until ZooKeeper answers, or for =SECONDS");
  app.callback([&invocation, text] {
    if (text->empty()) return;
    Expected<Duration> wait = *text == kForever ? Duration::max() : ParseDuration(*text);
    if (!wait) throw CLI::ValidationError(kServerWait, wait.error().message());
    invocation.server_wait = *wait;
  });
}

// Declares the tool's own options.
void DeclareOptions(CLI::App& app, Invocation& invocation) {
  app.set_version_flag("--version", fmt::format("Nodepool version: {}", nodepool::Version()));
  app.add_option("-c", invocation.config_path, "configuration file")
      ->type_name("FILE")
      ->envname(daemon::kConfigVariable)
      ->capture_default_str();
  app.add_option("-s", invocation.secure_path, "secure file, merged into the configuration")
      ->type_name("FILE");
  app.add_option("-l", invocation.logging_path, "logging configuration file")->type_name("FILE");
  app.add_option("--drivers-dir", invocation.drivers_dirs,
                 "directory of drivers that are no part of the program; may be repeated")
      ->type_name("DIR")
      ->allow_extra_args(false);
  app.add_flag("-d,--debug", invocation.is_debug, "log at DEBUG to standard error");
  AddServerWait(app, invocation);
}

void DeclareCommands(CLI::App& app, Invocation& invocation) {
  for (const CommandGroup& group : kCommandGroups) {
    for (RegisterCommand* declare : group.commands) declare(app, invocation);
    auto is_new = [](const CLI::App* command) { return command->get_group() == "Subcommands"; };
    for (CLI::App* command : app.get_subcommands(is_new)) command->group(group.name);
  }
}

// Declares options and commands, which fill the invocation.
void Declare(CLI::App& app, Invocation& invocation) {
  app.formatter(daemon::HelpFormat());
  app.footer(kCommandFooter);
  app.fallthrough();
  app.require_subcommand(0, 1);
  DeclareOptions(app, invocation);
  DeclareCommands(app, invocation);
  app.footer(kExamples);
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  auto is_shown = [](const CLI::App* command) { return !command->get_group().empty(); };
  for (const CLI::App* command : app.get_subcommands(is_shown)) names.push_back(command->get_name());
  return names;
}

// The first argument in the position of a command that is not the name of one.
std::optional<std::string> UnknownCommand(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::size_t place = daemon::PlaceOfCommand(app, arguments);
  if (place == arguments.size()) return std::nullopt;
  auto is_meant = [&](const CLI::App* command) { return command->get_name() == arguments[place]; };
  bool is_known = !app.get_subcommands(is_meant).empty();
  return is_known ? std::nullopt : std::optional(arguments[place]);
}

// Takes "--" and all behind it out of the arguments of `nodepool exec`. CLI11 would take it for arguments of
// ours.
std::vector<std::string> TakeWordsToRun(const CLI::App& app, std::vector<std::string>& arguments) {
  std::size_t place = daemon::PlaceOfCommand(app, arguments);
  if (place == arguments.size() || arguments[place] != "exec") return {};
  auto dashes = std::ranges::find(arguments, "--");
  if (dashes == arguments.end()) return {};
  std::vector<std::string> words(dashes + 1, arguments.end());
  arguments.erase(dashes, arguments.end());
  return words;
}

std::string SuggestCommand(const CLI::App& app, const std::string& word) {
  std::optional<std::string> nearest = NearestSpelling(word, CommandNames(app));
  return fmt::format("there is no command {}{}", Excerpt(word),
                     nearest ? fmt::format("; did you mean {}?", *nearest) : "");
}

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

std::size_t PlaceOfCommand(std::vector<std::string> arguments) {
  CLI::App app(kDescription, kName);
  Invocation invocation;
  Declare(app, invocation);
  daemon::ExpandAbbreviations(app, arguments);
  return daemon::PlaceOfCommand(app, arguments);
}

std::vector<std::string> WithoutHelpCommand(std::vector<std::string> arguments) {
  std::size_t place = PlaceOfCommand(arguments);
  if (place == arguments.size() || arguments[place] != kHelpCommand) return arguments;
  arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(place));
  arguments.emplace_back("--help");
  return arguments;
}

std::variant<Invocation, int> ParseArguments(std::vector<std::string> arguments, std::ostream& out,
                                             std::ostream& err) {
  CLI::App app(kDescription, kName);
  Invocation invocation;
  Declare(app, invocation);
  arguments = WithoutHelpCommand(std::move(arguments));
  invocation.words_to_run = TakeWordsToRun(app, arguments);
  daemon::ExpandAbbreviations(app, arguments);
  if (std::optional<std::string> word = UnknownCommand(app, arguments)) {
    err << daemon::UsageErrorIn(app, arguments, SuggestCommand(app, *word)).what() << '\n';
    return daemon::kUsageError;
  }
  try {
    daemon::ParseArguments(app, std::move(arguments));
  } catch (const daemon::UsageError& error) {
    err << error.what() << '\n';
    return daemon::kUsageError;
  } catch (const CLI::Success& wanted) {
    return app.exit(wanted, out, err);
  }
  if (app.get_subcommands().empty()) {
    out << app.help();
    return 1;
  }
  return invocation;
}

Expected<Duration> ParseDuration(std::string_view text) {
  constexpr double kLongest = 100 * 365 * 86400.0;
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  double factor = unit.empty() || unit == "s" ? 1
                  : unit == "m"               ? 60
                  : unit == "h"               ? 3600
                  : unit == "d"               ? 86400
                                              : 0;
  if (error != std::errc() || factor == 0 || !(number >= 0) || !(number * factor <= kLongest)) {
    return Unexpected(
        Verdict::kInvalid,
        fmt::format("\"{}\" is no duration; write for example 90, 90s, 5m, 1.5h or 2d", Excerpt(text)));
  }
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(number * factor));
}

}  // namespace nodepool::cli
