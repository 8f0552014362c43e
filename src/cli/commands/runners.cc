#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "cli/commands/commands.h"
#include "cli/launcher_query.h"
#include "cli/listing_arguments.h"
#include "cli/show_listing.h"
#include "listing/runner_listing.h"
#include "model/lease.h"

namespace nodepool::cli {
namespace {

using Listings = ListingCommand::Listings;

bool IsWanted(const auto& entry) { return entry.second.state == RunState::kWanted; }

// Why leases have no node yet, as launchers say; they are asked only if a runner waits for one.
Task<std::map<LeaseId, std::string>> AskWhyLeasesWait(Context& context, const Caches& caches) {
  std::map<LeaseId, std::string> why;
  if (std::ranges::none_of(caches.runners.runs(), [](const auto& entry) { return IsWanted(entry); }))
    co_return why;
  listing::Reasons reasons = co_await AskWhyRequestsWait(context, caches.requests);
  for (const auto& [id, reason] : reasons) {
    const store::StoredRequest* request = caches.requests.Find(id);
    std::optional<LeaseId> lease = request == nullptr ? std::nullopt : LeaseOf(request->record);
    if (lease) why[*lease] = reason;
  }
  co_return why;
}

Task<Listings> MakeRunners(Context& context, const Caches& caches) {
  std::map<LeaseId, std::string> why = co_await AskWhyLeasesWait(context, caches);
  auto why_no_node = [&why](const RunnerRun& run) {
    auto found = why.find(run.lease);
    return found == why.end() ? std::string() : found->second;
  };
  Listings listings;
  listings.push_back(listing::ListRunnerSets(listing::RunnerSets(caches.runners)));
  listings.push_back(listing::ListRunnerJobs(listing::RunnerJobs(caches.runners, why_no_node)));
  co_return listings;
}

std::string RunnersText(const Listings& listings, const Page& page) {
  std::string sets = TextOf(listings[0], page), jobs = TextOf(listings[1], page);
  if (page.output == Output::kJson) return fmt::format(R"({{"runners":{},"runner_jobs":{}}})", sets, jobs);
  return sets + "\n\n" + jobs;
}

// `nodepool runners`: every set of runners, then its jobs: those that wait, and why, those that run, and
// where (runners.md 10). Launchers are queried why runs have no node yet.
ListingCommand RunnersListing() {
  return {.needs = {&Caches::requests, &Caches::components, &Caches::runners},
          .make = [](Context& context, const Caches& caches) { return MakeRunners(context, caches); },
          .layout = &RunnersText};
}

}  // namespace

void RegisterRunners(CLI::App& app, Invocation& invocation) {
  AddListing(app, invocation, "runners", "list sets of runners and the jobs of CI services on nodes",
             [](Output) { return RunnersListing(); });
}

}  // namespace nodepool::cli
