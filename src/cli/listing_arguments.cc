#include "cli/listing_arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "base/text.h"
#include "cli/arguments.h"
#include "listing/choose_columns.h"

namespace nodepool::cli {

namespace {

// "NAME", or the allowed words in the format of the parser's own choices.
std::string TypeOf(const listing::Column& column, std::string_view name) {
  std::string type(name);
  for (char& c : type) c = static_cast<char>(std::toupper(c));
  std::vector<std::string> words(column.words.begin(), column.words.end());
  return words.empty() ? type : fmt::format("{}:{{{}}}", type, Join(words, ","));
}

}  // namespace

void FilterArguments::AddTo(CLI::App& command, const std::vector<listing::Column>& columns) {
  for (const auto& [kind, name] : listing::kFilters) {
    const listing::Column* column = Find(columns, kind);
    if (column == nullptr) continue;
    command
        .add_option(fmt::format("--{}", name), words_[kind],
                    fmt::format("only of this {}; may be repeated", name))
        ->allow_extra_args(false)
        ->type_name(TypeOf(*column, name));
  }
}

listing::RowFilter FilterArguments::Filter(const std::vector<listing::Column>& columns) const {
  listing::RowFilter filter;
  for (const auto& [kind, words] : words_) {
    if (!words.empty()) filter[kind] = {words.begin(), words.end()};
  }
  if (auto fault = FaultOf(filter, columns))
    throw CLI::ValidationError(fmt::format("--{}", listing::NameOf(fault->kind)), fault->message);
  return filter;
}

namespace {

constexpr const char* kWatch = "--watch";
constexpr const char* kOutput = "--output";
constexpr Duration kShortestWatch = std::chrono::seconds(1);

// The options of a command that lists something: only those that apply to the list.
class ListingArguments {
 public:
  void AddTo(CLI::App& command, const ListingCommand& listing);
  Output output() const { return is_json_ ? Output::kJson : Output::kTable; }
  // The options given to the command. Throws CLI::ValidationError for an impossible value.
  View ViewOf(const CLI::App& command, const ListingCommand& listing) const;

 private:
  bool is_json_ = false;
  FilterArguments filters_;
  std::string watch_;
  std::string color_ = "auto";
  bool is_wide_ = false;
  std::string columns_;
};

Duration WatchPause(const std::string& text) {
  if (text.empty()) return kShortestWatch;
  Expected<Duration> pause = ParseDuration(text);
  if (!pause) throw CLI::ValidationError(kWatch, pause.error().message());
  if (*pause < kShortestWatch)
    throw CLI::ValidationError(kWatch, "there is at least a second between two tables");
  return *pause;
}

// The keys of "columns=A,B".
std::vector<std::string> ChosenColumns(const std::string& text, const std::vector<listing::Column>& columns) {
  constexpr std::string_view kPrefix = "columns=";
  if (!text.starts_with(kPrefix)) throw CLI::ValidationError(kOutput, "it has the form columns=A,B");
  auto keys = KeysOf(Split(text.substr(kPrefix.size()), ','), columns);
  if (!keys) throw CLI::ValidationError(kOutput, keys.error().message());
  if (keys->empty()) throw CLI::ValidationError(kOutput, "it names no column");
  return *keys;
}

Color ColorOf(const std::string& word) {
  return word == "always" ? Color::kAlways : word == "never" ? Color::kNever : Color::kAuto;
}

void ListingArguments::AddTo(CLI::App& command, const ListingCommand& listing) {
  command.add_flag("--json", is_json_, "print JSON instead of a table");
  filters_.AddTo(command, listing.columns);
  command.add_flag("--wide", is_wide_, "all columns in full, also where the terminal is narrower");
  if (!listing.columns.empty()) {
    command.add_option(kOutput, columns_, "these columns in this order, by key or title")
        ->type_name("columns=A,B");
  }
  if (listing.can_be_watched) {
    command.add_option(kWatch, watch_, "show it again after changes, at most once in SECONDS (1)")
        ->expected(0, 1)
        ->type_name("SECONDS");
  }
  command.add_option("--color", color_, "states in color: auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN");
}

View ListingArguments::ViewOf(const CLI::App& command, const ListingCommand& listing) const {
  View view{.output = output(),
            .filter = filters_.Filter(listing.columns),
            .color = ColorOf(color_),
            .is_wide = is_wide_};
  if (!columns_.empty()) view.columns = ChosenColumns(columns_, listing.columns);
  if (listing.can_be_watched && command.count(kWatch) > 0) view.watch = WatchPause(watch_);
  return view;
}

bool HasAll(const std::vector<listing::Column>& columns, const std::vector<std::string>& keys) {
  return std::ranges::all_of(keys, [&](const std::string& key) {
    return std::ranges::find(columns, key, &listing::Column::key) != columns.end();
  });
}

}  // namespace

CLI::App* AddListing(CLI::App& app, Invocation& invocation, const std::string& name, const std::string& help,
                     std::function<ListingCommand(Output)> make) {
  auto arguments = std::make_shared<ListingArguments>();
  CLI::App* command = app.add_subcommand(name, help);
  arguments->AddTo(*command, make(Output::kTable));
  command->callback([&invocation, command, arguments, make = std::move(make)] {
    ListingCommand listing = make(arguments->output());
    View view = arguments->ViewOf(*command, listing);
    invocation.command = [listing, view](Context& context) { return ShowListing(context, listing, view); };
  });
  return command;
}

CLI::App* AddDetailedListing(CLI::App& app, Invocation& invocation, const std::string& name,
                             const std::string& help, const std::string& detail_help,
                             std::function<ListingCommand(Output, bool is_detailed)> make) {
  auto arguments = std::make_shared<ListingArguments>();
  auto is_detailed = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(name, help);
  arguments->AddTo(*command, make(Output::kTable, false));
  command->add_flag("--detail", *is_detailed, detail_help);
  command->callback([&invocation, command, arguments, is_detailed, make = std::move(make)] {
    ListingCommand listing = make(arguments->output(), true);
    View view = arguments->ViewOf(*command, listing);
    view.is_detailed = *is_detailed;
    ListingCommand brief = make(arguments->output(), false);
    if (!*is_detailed && HasAll(brief.columns, view.columns)) listing = std::move(brief);
    invocation.command = [listing, view](Context& context) { return ShowListing(context, listing, view); };
  });
  return command;
}

}  // namespace nodepool::cli
