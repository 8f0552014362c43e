#include "cli/show_listing.h"

#include <ostream>
#include <set>

#include "async/attempt.h"
#include "async/cleanup.h"
#include "async/event.h"
#include "cli/console.h"
#include "cli/unknown_names.h"
#include "listing/choose_columns.h"
#include "listing/record_filter.h"

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

}  // namespace nodepool::cli
