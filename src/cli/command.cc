#include "cli/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <ostream>

#include "base/error.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/commands/commands.h"
#include "daemon/parse_arguments.h"
#include "listing/fit.h"
#include "listing/shown_text.h"
#include "operate/actions.h"

namespace nodepool::cli {

Task<> UntilInterrupted(Task<> task) {
  try {
    co_await std::move(task);
    co_return;
  } catch (...) {
    if (VerdictOf(std::current_exception()) != Verdict::kCancelled) throw;
  }
  co_await IgnoreCancellation();
}

namespace {

constexpr std::size_t kPriorityDigits = 3;

bool IsDigits(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

void Print(Context& context, const listing::Listing& listing, Output output) {
  context.out << TextOf(listing, PageOf(context, output)) << '\n';
}

std::string RefuseBadReason(const std::string& text) {
  if (!IsValidUtf8(text)) return "it is not UTF-8";
  return text.size() > kMaxOperatorReason ? fmt::format("it is longer than {} bytes", kMaxOperatorReason)
                                          : "";
}

Task<> UnlockNode(std::optional<store::LockedNode>& node) {
  if (node) co_await node->Unlock();
}

std::optional<RequestId> ParseRequestName(std::string_view text) {
  std::size_t dash = std::min(text.find('-'), text.size());
  std::optional<NodeId> number = operate::ParseNodeId(text.substr(std::min(dash + 1, text.size())));
  bool is_request = dash == kPriorityDigits && IsDigits(text.substr(0, dash)) && number;
  return is_request ? std::optional(RequestId(fmt::format("{}-{}", text.substr(0, dash), *number)))
                    : std::nullopt;
}

namespace {

std::string FittedText(const listing::Listing& listing, const Page& page) {
  listing::FittedTable table = FitTable(listing, page.now, page.colors, *page.width);
  bool are_blocks = page.is_detailed && !table.is_whole && !listing.rows.empty();
  if (are_blocks) return ToBlocks(listing, page.now, page.colors, *page.width);
  if (table.left_out.empty()) return table.text;
  std::string note = "Left out: " + Join(table.left_out, ", ");
  return table.text + '\n' + listing::CutToWidth(note, *page.width);
}

}  // namespace

Page PageOf(const Context& context, Output output) {
  return {.output = output, .now = context.loop.Now(), .width = context.terminal_width()};
}

std::string TextOf(const listing::Listing& listing, const Page& page) {
  if (page.output == Output::kJson) return ToJson(listing, page.now);
  if (page.width) return FittedText(listing, page);
  return ToTable(listing, page.now, page.colors);
}

namespace {

Task<bool> IsConfirmed(Context& context, const listing::Listing& rows, std::string question) {
  context.out << TextOf(rows, PageOf(context, Output::kTable)) << '\n' << question << std::flush;
  std::string answer = co_await context.read_line();
  co_return answer == "y" || answer == "Y";
}

}  // namespace

Task<bool> MayChange(Context& context, const listing::Listing& rows, bool is_confirmed, std::string verb,
                     std::string nouns) {
  if (is_confirmed || rows.rows.size() <= 1) co_return true;
  if (!context.can_ask) {
    context.logger.Error("{} {} match; --yes is missing to {} them all", rows.rows.size(), nouns, verb);
    co_return false;
  }
  std::string question = fmt::format("Really {} these {} {}? [N/y] ", verb, rows.rows.size(), nouns);
  bool is_meant = co_await IsConfirmed(context, rows, std::move(question));
  if (!is_meant) context.logger.Error("Nothing was changed");
  co_return is_meant;
}

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
