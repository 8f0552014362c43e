#include "cli/jobs.h"

#include <fmt/format.h>

#include <ostream>

#include "base/text.h"
#include "listing/job_listing.h"
#include "sched/job_rules.h"

namespace nodepool::cli {
namespace {

Task<ListingCommand::Listings> Make(const Tree& tree, Output output) {
  ListingCommand::Listings listings;
  listing::Listing& listing = listings.emplace_back(listing::ListJobs(tree.jobs().rules()));
  if (output == Output::kTable) {
    for (std::vector<Cell>& row : listing.rows) {
      if (row.back().is_null()) row.back() = "None";
    }
  }
  co_return listings;
}

}  // namespace

ListingCommand JobListing(Output output) {
  return {.needs = {.jobs = true},
          .columns = listing::JobColumns(),
          .make = [output](Context&, const Tree& tree) { return Make(tree, output); }};
}

Task<int> CreateJob(Context& context, JobRule rule) {
  co_await context.store.jobs.CreateRule(std::move(rule));
  ListingCommand list = JobListing(Output::kTable);
  View view;
  int status = co_await ShowListing(context, std::move(list), std::move(view));
  co_return status;
}

Task<int> DeleteJob(Context& context, std::string text) {
  JobId id(fmt::format("{:0>10}", text));  // with or without leading zeros
  bool is_deleted = false;
  if (!text.empty()) is_deleted = co_await context.store.jobs.DeleteRule(id);
  if (!is_deleted) context.out << fmt::format("Job {} not found.\n", Excerpt(text));
  co_return 0;
}

std::string RefuseBadJobName(const std::string& name) {
  if (name.empty()) return "it is empty";
  if (!IsValidUtf8(name)) return "it is not UTF-8";
  Expected<sched::JobMatcher> matcher = sched::JobMatcher::Make(name);
  return matcher ? "" : matcher.error().message();
}

}  // namespace nodepool::cli
