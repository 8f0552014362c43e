#include "listing/status.h"

#include <CLI/CLI.hpp>

#include "cli/commands/commands.h"
#include "cli/launcher_query.h"
#include "cli/show_listing.h"
#include "daemon/web_address.h"
#include "driver/loading/config_follower.h"

namespace nodepool::cli {

namespace {

using Listings = ListingCommand::Listings;

listing::PageOf PagesOf(const Context& context) {
  return [web = context.config->common.webapp, own = daemon::Hostname()](const Component& launcher) {
    return daemon::WebAddress(web, launcher.web.value_or(daemon::ConfiguredServer(web)), launcher.hostname,
                              own);
  };
}

Task<Listings> MakeStatus(Context& context, const Caches& caches, Output output) {
  listing::Reasons why = co_await AskWhyRequestsWait(context, caches.requests);
  listing::Configured configured = driver::ConfiguredBy(*context.config);
  listing::StatusRecords records{configured, caches, std::move(why), context.loop.Now()};
  bool is_table = output == Output::kTable;
  co_return listing::StatusParts(
      records, is_table ? listing::WaitingRows::kByReason : listing::WaitingRows::kEach, PagesOf(context));
}

std::string Screen(const Listings& parts, const Page& page) {
  if (page.output == Output::kJson) return ToStatusJson(parts, page.now);
  return ToStatusScreen(parts, page.now, page.colors, page.width);
}

// `nodepool status`: the state of everything, the most urgent problems first. If requests wait, queries the
// launchers why. A table lists the ten that have waited longest.
ListingCommand StatusListing(Output output) {
  return {.needs = {&Caches::nodes, &Caches::requests, &Caches::images, &Caches::components, &Caches::pauses,
                    &Caches::breakers, &Caches::runners},
          .make = [output](Context& context,
                           const Caches& caches) { return MakeStatus(context, caches, output); },
          .layout = &Screen};
}

}  // namespace

void RegisterStatus(CLI::App& app, Invocation& invocation) {
  AddListing(app, invocation, "status", "show how everything is, and what to check first", &StatusListing);
}

}  // namespace nodepool::cli
