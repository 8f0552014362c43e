#include "cli/commands/status.h"

#include <CLI/CLI.hpp>
#include <limits>

#include "cli/commands/commands.h"
#include "cli/configured.h"
#include "cli/launcher_query.h"
#include "cli/listing_arguments.h"
#include "listing/status_screen.h"

namespace nodepool::cli {
namespace {

using Listings = ListingCommand::Listings;

constexpr std::size_t kMostRequests = 10;

Task<listing::Reasons> AskWhy(Context& context, const Tree& tree) {
  listing::Reasons reasons;
  if (listing::WaitingRequests(tree.requests()).empty()) co_return reasons;
  LaunchersAnswers answers = co_await AskAboutRequests(context);
  for (const auto& [id, entries] : answers.waits) reasons[id] = WaitText(entries);
  co_return reasons;
}

Task<Listings> MakeStatus(Context& context, const Tree& tree, Output output) {
  listing::Reasons why = co_await AskWhy(context, tree);
  listing::Configured configured = ConfiguredBy(*context.config);
  listing::StatusRecords records{configured,    tree.components().all(), tree.nodes(),   tree.requests(),
                                 tree.images(), tree.pauses(),           std::move(why), context.loop.Now()};
  bool is_table = output == Output::kTable;
  co_return listing::StatusParts(records, is_table ? kMostRequests : std::numeric_limits<std::size_t>::max());
}

std::string Screen(const Listings& parts, const Page& page) {
  if (page.output == Output::kJson) return ToStatusJson(parts, page.now);
  return ToStatusScreen(parts, page.now, page.colors, page.width);
}

}  // namespace

ListingCommand StatusListing(Output output) {
  return {.needs = {.nodes = true, .requests = true, .images = true, .components = true, .pauses = true},
          .make = [output](Context& context, const Tree& tree) { return MakeStatus(context, tree, output); },
          .layout = &Screen};
}

void RegisterStatus(CLI::App& app, Invocation& invocation) {
  AddListing(app, invocation, "status", "show how everything is, and what to check first", &StatusListing);
}

}  // namespace nodepool::cli
