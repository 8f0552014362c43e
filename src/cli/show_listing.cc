#include "cli/show_listing.h"

#include <ostream>
#include <set>

#include "async/cleanup.h"
#include "async/event.h"
#include "cli/interruption.h"
#include "cli/unknown_names.h"
#include "listing/choose_columns.h"

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
Task<Listings> Make(Context& context, const ListingCommand& command, const View& view, const Tree& tree,
                    std::set<std::string>& warned) {
  Listings listings = co_await command.make(context, tree);
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

Task<> Follow(Context& context, const ListingCommand& command, const View& view, Tree& tree) {
  tree.Start();
  Event changed("a change in ZooKeeper");
  std::vector<Subscription> registrations = tree.TellOfChanges(changed);
  Subscription session = WatchSession(context, changed);
  std::optional<std::string> shown;
  std::set<std::string> warned;
  while (true) {
    SteadyTime next = context.loop.SteadyNow() + *view.watch;
    if (context.store.tree.client().state() == zk::SessionState::kClosed) {
      throw Error(Verdict::kFail, "ZooKeeper refused the connection for good");
    }
    co_await tree.WaitSynced();
    changed.Reset();
    Listings listings = co_await Make(context, command, view, tree, warned);
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

Task<> ShowOnce(Context& context, const ListingCommand& command, const View& view, Tree& tree) {
  tree.Start();
  co_await tree.WaitSynced();
  std::set<std::string> warned;
  Listings listings = co_await Make(context, command, view, tree, warned);
  context.out << TextOf(context, command, listings, view, context.loop.Now()) << '\n';
}

}  // namespace

Tree::Tree(Context& context, Needs needs)
    : needs_(needs),
      nodes_(context.loop, context.store.tree.client()),
      requests_(context.loop, context.store.tree.client()),
      images_(context.loop, context.store.tree.client()),
      jobs_(context.loop, context.store.tree.client()),
      components_(context.loop, context.store.tree.client()),
      pauses_(context.loop, context.store.tree.client()) {}

void Tree::Start() {
  if (needs_.nodes) nodes_.Start();
  if (needs_.requests) requests_.Start();
  if (needs_.images) images_.Start();
  if (needs_.jobs) jobs_.Start();
  if (needs_.components) components_.Follow();
  if (needs_.pauses) pauses_.Start();
}

Task<> Tree::Stop() {
  co_await nodes_.Stop();
  co_await requests_.Stop();
  co_await images_.Stop();
  co_await jobs_.Stop();
  co_await components_.Stop();
  co_await pauses_.Stop();
}

Task<> Tree::WaitSynced() {
  if (needs_.nodes) co_await nodes_.WaitSynced();
  if (needs_.requests) co_await requests_.WaitSynced();
  if (needs_.images) co_await images_.WaitSynced();
  if (needs_.jobs) co_await jobs_.WaitSynced();
  if (needs_.components) co_await components_.WaitSynced();
  if (needs_.pauses) co_await pauses_.WaitSynced();
}

std::vector<Subscription> Tree::TellOfChanges(Event& changed) {
  std::vector<Subscription> registrations;
  registrations.push_back(nodes_.OnChange(
      [&](const NodeId&, const store::StoredNode*, const store::StoredNode*) { changed.Set(); }));
  registrations.push_back(requests_.OnChange(
      [&](const RequestId&, const store::StoredRequest*, const store::StoredRequest*) { changed.Set(); }));
  registrations.push_back(images_.OnChange([&](const ImageName&) { changed.Set(); }));
  registrations.push_back(jobs_.OnRule([&](const JobId&, const store::StoredJobRule*) { changed.Set(); }));
  registrations.push_back(
      components_.OnChange([&](const std::string&, const Component*, const Component*) { changed.Set(); }));
  registrations.push_back(pauses_.OnChange(
      [&](const ProviderName&, const ProviderPause*, const ProviderPause*) { changed.Set(); }));
  return registrations;
}

Task<int> ShowListing(Context& context, ListingCommand command, View view) {
  auto tree = std::make_shared<Tree>(context, command.needs);
  auto stop = [&tree] { return tree->Stop(); };
  if (view.watch) {
    co_await WithCleanup(UntilInterrupted(Follow(context, command, view, *tree)), stop);
  } else {
    co_await WithCleanup(ShowOnce(context, command, view, *tree), stop);
  }
  if (context.abandon) context.abandon(std::move(tree));
  co_return 0;
}

}  // namespace nodepool::cli
