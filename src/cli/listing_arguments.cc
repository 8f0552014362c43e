#include "cli/listing_arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <vector>

#include "cli/durations.h"
#include "cli/filter_arguments.h"

namespace nodepool::cli {
namespace {

constexpr const char* kWatch = "--watch";
constexpr Duration kShortestWatch = std::chrono::seconds(1);

// The options of a command that lists something: only those that make sense for the list.
class ListingArguments {
 public:
  void AddTo(CLI::App& command, const ListingCommand& listing);
  Output output() const { return is_json_ ? Output::kJson : Output::kTable; }
  // What was given to the command. Throws CLI::ValidationError for a value that cannot be meant.
  View ViewOf(const CLI::App& command, const ListingCommand& listing) const;

 private:
  bool is_json_ = false;
  FilterArguments filters_;
  std::string watch_;
  std::string color_ = "auto";
};

Duration WatchPause(const std::string& text) {
  if (text.empty()) return kShortestWatch;
  Expected<Duration> pause = ParseDuration(text);
  if (!pause) throw CLI::ValidationError(kWatch, pause.error().message());
  if (*pause < kShortestWatch)
    throw CLI::ValidationError(kWatch, "there is at least a second between two tables");
  return *pause;
}

Color ColorOf(const std::string& word) {
  return word == "always" ? Color::kAlways : word == "never" ? Color::kNever : Color::kAuto;
}

void ListingArguments::AddTo(CLI::App& command, const ListingCommand& listing) {
  command.add_flag("--json", is_json_, "print JSON instead of a table");
  filters_.AddTo(command, listing.columns);
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
  View view{output(), filters_.Filter(listing.columns), ColorOf(color_), std::nullopt};
  if (listing.can_be_watched && command.count(kWatch) > 0) view.watch = WatchPause(watch_);
  return view;
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

}  // namespace nodepool::cli
