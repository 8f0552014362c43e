#include "cli/listing_arguments.h"

#include <fmt/format.h>

#include "cli/durations.h"

namespace nodepool::cli {
namespace {

constexpr const char* kWatch = "--watch";
constexpr Duration kShortestWatch = std::chrono::seconds(1);

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

}  // namespace

void ListingArguments::AddTo(CLI::App& command, const ListingCommand& listing) {
  command.add_flag("--json", is_json_, "print JSON instead of a table");
  for (const auto& [kind, name] : listing::kFilters) {
    if (Find(listing.columns, kind) == nullptr) continue;
    command
        .add_option(fmt::format("--{}", name), words_[kind],
                    fmt::format("only of this {}; may be repeated", name))
        ->allow_extra_args(false)
        ->type_name("NAME");
  }
  if (listing.can_be_watched) {
    command
        .add_option(kWatch, watch_,
                    "show it again when something changes, not more often than once in SECONDS (1)")
        ->expected(0, 1)
        ->type_name("SECONDS");
  }
  command.add_option("--color", color_, "states in color: auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN");
}

View ListingArguments::ViewOf(const CLI::App& command, const ListingCommand& listing) const {
  View view{output(), {}, ColorOf(color_), std::nullopt};
  for (const auto& [kind, words] : words_) {
    if (!words.empty()) view.filter[kind] = {words.begin(), words.end()};
  }
  if (auto fault = FaultOf(view.filter, listing.columns)) {
    throw CLI::ValidationError(fmt::format("--{}", listing::NameOf(fault->kind)), fault->message);
  }
  if (listing.can_be_watched && command.count(kWatch) > 0) view.watch = WatchPause(watch_);
  return view;
}

}  // namespace nodepool::cli
