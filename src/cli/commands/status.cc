#include "cli/commands/status.h"

#include <CLI/CLI.hpp>

#include "cli/commands/commands.h"
#include "cli/launcher_query.h"
#include "cli/listing_arguments.h"
#include "driver/loading/configured.h"
#include "listing/status_screen.h"

namespace nodepool::cli {
namespace {

using Listings = ListingCommand::Listings;

Task<listing::Reasons> AskWhy(Context& context, const Tree& tree) {
  listing::Reasons reasons;
  if (listing::WaitingRequests(tree.requests()).empty()) co_return reasons;
  LaunchersAnswers answers = co_await AskAboutRequests(context);
  WarnOfSilent(context, answers);
  for (const store::StoredRequest* request : listing::WaitingRequests(tree.requests()))
    reasons[request->id] = DecidingText(answers, request->id);
  co_return reasons;
}

Task<Listings> Make(Context& context, const Tree& tree, Output output) {
  listing::Reasons why = co_await AskWhy(context, tree);
  listing::Configured configured = driver::ConfiguredBy(*context.config);
  listing::StatusRecords records{configured,    tree.components().all(), tree.nodes(),   tree.requests(),
                                 tree.images(), tree.pauses(),           std::move(why), context.loop.Now()};
  bool is_table = output == Output::kTable;
  co_return listing::StatusParts(records,
                                 is_table ? listing::WaitingRows::kByReason : listing::WaitingRows::kEach);
}

std::string Screen(const Listings& parts, const Page& page) {
  if (page.output == Output::kJson) return ToStatusJson(parts, page.now);
  return ToStatusScreen(parts, page.now, page.colors, page.width);
}

}  // namespace

ListingCommand StatusListing(Output output) {
  return {.needs = {.nodes = true, .requests = true, .images = true, .components = true, .pauses = true},
          .make = [output](Context& context, const Tree& tree) { return Make(context, tree, output); },
          .layout = &Screen};
}

void RegisterStatus(CLI::App& app, Invocation& invocation) {
  AddListing(app, invocation, "status", "show how everything is, and what to check first", &StatusListing);
}

}  // namespace nodepool::cli
