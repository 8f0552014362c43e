#include "cli/show_listing.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <ostream>
#include <set>
#include <vector>

#include "async/event.h"
#include "async/task.h"
#include "base/text.h"
#include "cli/command.h"
#include "listing/selection.h"

namespace nodepool::cli {

namespace {

constexpr const char* kClearScreen = "\x1b[H\x1b[2J";

using Listings = ListingCommand::Listings;

Page PageOf(const Context& context, const View& view, WallTime now) {
  Page page = PageOf(context, view.output);
  page.now = now;
  page.is_detailed = view.is_detailed;
  bool is_colored = view.color == Color::kAlways || (view.color == Color::kAuto && context.wants_color);
  if (is_colored) page.colors = listing::Colors::kStates;
  if (view.is_wide || !view.columns.empty()) page.width.reset();
  return page;
}

std::string TextOf(const Context& context, const ListingCommand& command, const Listings& listings,
                   const View& view, WallTime now) {
  Page page = PageOf(context, view, now);
  return command.layout ? command.layout(listings, page) : TextOf(listings.front(), page);
}

// Scripts read the columns that a table has always had.
bool IsReadByScripts(const Context& context, const View& view) {
  return view.output == Output::kTable && !view.is_wide && !context.terminal_width();
}

// `warned` are the warnings so far, none of which is repeated.
Task<Listings> Make(Context& context, const ListingCommand& command, const View& view, const Caches& caches,
                    std::set<std::string>& warned) {
  Listings listings = co_await command.make(context, caches);
  for (listing::Listing& listing : listings) {
    for (std::string& unknown : UnknownWords(*context.config, listing, view.filter))
      if (warned.insert(unknown).second) context.logger.Warning("{}", unknown);
    Keep(listing, view.filter);
    if (!view.columns.empty()) {
      KeepColumns(listing, view.columns);
    } else if (IsReadByScripts(context, view)) {
      DropExtraColumns(listing);
    }
  }
  co_return listings;
}

// Warns an operator who watches a table that it is no longer updated.
Subscription WatchSession(Context& context, Event& changed) {
  return context.store.tree.client().OnSession([&context, &changed](zk::SessionState state) {
    if (state == zk::SessionState::kSuspended)
      context.logger.Warning("ZooKeeper is away; changes are shown when it is back");
    if (state == zk::SessionState::kClosed) changed.Set();
  });
}

void StartNeeded(const ListingCommand& command, Caches& caches) {
  for (const NeededCache& needed : command.needs) needed.In(caches).Start();
}

std::vector<Subscription> WatchRecords(const Caches& caches, Event& changed) {
  std::vector<Subscription> registrations;
  for (const store::Cache* cache : caches.all())
    registrations.push_back(cache->OnAnyChange([&changed] { changed.Set(); }));
  return registrations;
}

// Error(kFail): the client will make no session any more.
void RequireSessions(const Context& context) {
  if (context.store.tree.client().state() != zk::SessionState::kClosed) return;
  throw Error(Verdict::kFail, "ZooKeeper refused the connection for good");
}

Task<> Follow(Context& context, const ListingCommand& command, const View& view, Caches& caches) {
  StartNeeded(command, caches);
  Event changed("a change in ZooKeeper");
  std::vector<Subscription> registrations = WatchRecords(caches, changed);
  Subscription session = WatchSession(context, changed);
  std::optional<std::string> shown;
  std::set<std::string> warned;
  while (true) {
    SteadyTime next = context.loop.SteadyNow() + *view.watch;
    RequireSessions(context);
    co_await caches.WaitSynced();
    changed.Reset();
    Listings listings = co_await Make(context, command, view, caches, warned);
    std::string ageless = TextOf(context, command, listings, view, WallTime());
    if (shown != ageless) {
      if (context.is_terminal) context.out << kClearScreen;
      context.out << TextOf(context, command, listings, view, context.loop.Now()) << std::endl;
      if (!context.out) co_return;  // the reader has closed the output
      shown = std::move(ageless);
    }
    co_await changed.Wait();
    co_await context.loop.SleepUntil(next);
  }
}

// Which records a listing is made of; not set: all.
store::IsWanted WantedRecords(const Context& context, const ListingCommand& command, const View& view) {
  if (!command.is_filtered_by_record || view.filter.empty()) return nullptr;
  // Whether there are records of a word that is not configured, is said, too.
  listing::RecordFilter filter(view.filter, UnconfiguredWords(*context.config, view.filter));
  return [filter = std::move(filter)](std::string_view record) { return filter.MayMatch(record); };
}

Task<> ShowOnce(Context& context, const ListingCommand& command, const View& view, Caches& caches) {
  for (const NeededCache& needed : command.needs)
    co_await needed.In(caches).ReadOnce(context.store.tree, WantedRecords(context, command, view));
  std::set<std::string> warned;
  Listings listings = co_await Make(context, command, view, caches, warned);
  context.out << TextOf(context, command, listings, view, context.loop.Now()) << '\n';
}

Task<> Show(Context& context, const ListingCommand& command, const View& view, Caches& caches) {
  auto stop = [&caches] { return caches.Stop(); };
  if (view.watch) {
    co_await WithCleanup(UntilInterrupted(Follow(context, command, view, caches)), stop);
  } else {
    co_await WithCleanup(ShowOnce(context, command, view, caches), stop);
  }
}

}  // namespace

Task<int> ShowListing(Context& context, ListingCommand command, View view) {
  std::shared_ptr<Caches> caches;
  while (true) {
    caches = std::make_shared<Caches>(context.loop, context.store.tree.client());
    Task<> show = Show(context, command, view, *caches);
    Outcome<> shown = co_await Attempt(std::move(show));
    if (shown) break;
    // What was read under a session that has ended is read again; the client makes another.
    if (!FailedWith(shown, Verdict::kLostSession)) shown.error().Rethrow();
    RequireSessions(context);
  }
  if (context.abandon) context.abandon(std::move(caches));
  co_return 0;
}

namespace {

using listing::Listing;

std::vector<std::string> ProvidersIn(const driver::LoadedConfig& config) {
  std::vector<std::string> names;
  for (const config::ProviderSection& section : config.common.providers) names.push_back(section.name.value);
  for (const auto& [name, provider] : config.providers) names.push_back(name.value);
  return names;
}

template <class Map>
std::vector<std::string> KeysIn(const Map& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) names.push_back(name.value);
  return names;
}

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

std::string Unknown(const std::string& name, const std::vector<std::string>& known) {
  std::optional<std::string> nearest = NearestSpelling(name, known);
  return fmt::format("{} is not configured, and there are no records of it{}", Excerpt(name),
                     nearest ? fmt::format("; did you mean {}?", *nearest) : "");
}

std::vector<std::string> Configured(const driver::LoadedConfig& config, listing::Kind kind) {
  return kind == listing::Kind::kProvider ? ProvidersIn(config) : KeysIn(config.common.labels);
}

bool IsInRows(const Listing& listing, listing::Kind kind, const std::string& word) {
  std::ptrdiff_t place = Find(listing.columns, kind) - listing.columns.data();
  return std::ranges::any_of(listing.rows, [&](const std::vector<Cell>& row) {
    return listing::HasOneOf(row[static_cast<std::size_t>(place)], {word});
  });
}

}  // namespace

bool IsConfigured(const driver::LoadedConfig& config, const ProviderName& provider) {
  return Has(ProvidersIn(config), provider.value);
}

std::string UnknownProvider(const driver::LoadedConfig& config, const ProviderName& provider) {
  return Unknown(provider.value, ProvidersIn(config));
}

std::string UnknownImage(const driver::LoadedConfig& config, const ImageName& image) {
  return Unknown(image.value, KeysIn(config.common.diskimages));
}

std::set<std::string> UnconfiguredWords(const driver::LoadedConfig& config,
                                        const listing::RowFilter& filter) {
  std::set<std::string> unconfigured;
  for (const auto& [kind, words] : filter) {
    if (kind == listing::Kind::kState) continue;
    std::vector<std::string> configured = Configured(config, kind);
    std::ranges::copy_if(words, std::inserter(unconfigured, unconfigured.end()),
                         [&](const std::string& word) { return !Has(configured, word); });
  }
  return unconfigured;
}

std::vector<std::string> UnknownWords(const driver::LoadedConfig& config, const Listing& listing,
                                      const listing::RowFilter& filter) {
  std::vector<std::string> unknown;
  for (const auto& [kind, words] : filter) {
    if (kind == listing::Kind::kState) continue;
    std::vector<std::string> configured = Configured(config, kind);
    for (const std::string& word : words) {
      bool is_known = Has(configured, word) || IsInRows(listing, kind, word);
      if (!is_known) unknown.push_back(Unknown(word, configured));
    }
  }
  return unknown;
}

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
