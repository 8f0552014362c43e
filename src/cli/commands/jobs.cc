#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>

#include "async/task.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/show_listing.h"
#include "listing/record_listing.h"
#include "model/job.h"
#include "sched/jobs/job_rules.h"

namespace nodepool::cli {

namespace {

Task<ListingCommand::Listings> MakeJobs(const Caches& caches, Output output) {
  ListingCommand::Listings listings;
  listing::Listing& listing = listings.emplace_back(listing::ListJobs(caches.jobs.rules()));
  if (output == Output::kTable) {
    for (std::vector<Cell>& row : listing.rows) {
      if (row.back().is_null()) row.back() = "None";
    }
  }
  co_return listings;
}

// The rule that applies to the job of this name, or to this expression: the first one.
Task<std::optional<store::StoredJobRule>> RuleOf(store::JobCache& cache, std::string name) {
  cache.Start();
  co_await cache.WaitSynced();
  auto is_same = [&](const auto& entry) { return entry.second.record.name == name; };
  auto found = std::ranges::find_if(cache.rules(), is_same);
  co_return found == cache.rules().end() ? std::nullopt : std::optional(found->second);
}

// `nodepool job-list`: every rule about jobs (operations.md 13.5).
ListingCommand JobListing(Output output) {
  return {.needs = {&Caches::jobs},
          .columns = listing::JobColumns(),
          .make = [output](Context&, const Caches& caches) { return MakeJobs(caches, output); }};
}

// `nodepool job-create NAME [--hold-on-failure N]`: adds a rule, unless there is the same already, then lists
// all. A rule of this name with another limit is an error: it would apply before the new one.
Task<int> CreateJob(Context& context, JobRule rule) {
  store::JobCache cache(context.loop, context.store.tree.client());
  auto stop = [&cache] { return cache.Stop(); };
  std::optional<store::StoredJobRule> first = co_await WithCleanup(RuleOf(cache, rule.name), stop);
  if (!first) {
    co_await context.store.jobs.CreateRule(std::move(rule));
  } else if (first->record.hold_on_failure == rule.hold_on_failure) {
    context.logger.Info("Rule {} for {} exists already", listing::NumberOf(first->id), Excerpt(rule.name));
  } else {
    std::int64_t number = listing::NumberOf(first->id);
    context.logger.Error("Rule {0} for {1} exists, and would apply before the new one; job-delete {0} first",
                         number, Excerpt(rule.name));
    co_return 1;
  }
  ListingCommand list = JobListing(Output::kTable);
  View view;
  int status = co_await ShowListing(context, std::move(list), std::move(view));
  co_return status;
}

// `nodepool job-delete ID`; an error if there is no such rule.
Task<int> DeleteJob(Context& context, std::string text) {
  JobId id(fmt::format("{:0>10}", text));  // with or without leading zeros
  bool is_deleted = false;
  if (!text.empty()) is_deleted = co_await context.store.jobs.DeleteRule(id);
  if (is_deleted) {
    context.logger.Info("Rule {} deleted; what is held stays held", id);
  } else {
    context.logger.Error("Job {} not found", Excerpt(text));
  }
  co_return is_deleted ? 0 : 1;
}

// Why the text is not a valid name for a rule; empty if it is.
std::string RefuseBadJobName(const std::string& name) {
  if (name.empty()) return "it is empty";
  if (!IsValidUtf8(name)) return "it is not UTF-8";
  Expected<sched::JobMatcher> matcher = sched::JobMatcher::Make(name);
  return matcher ? "" : matcher.error().message();
}

void AddJobCreate(CLI::App& app, Invocation& invocation) {
  struct Values {
    std::string name;
    std::optional<std::int64_t> hold_on_failure;
  };
  auto values = std::make_shared<Values>();
  CLI::App* command = app.add_subcommand("job-create", "hold nodes on which a job fails");
  command->add_option("NAME", values->name, "name of the job, or a regular expression that begins with ^")
      ->required()
      ->check(&RefuseBadJobName)
      ->type_name("");
  command->add_option("--hold-on-failure", values->hold_on_failure, "how many nodes at most; without it none")
      ->type_name("N");
  OnCommand(*command, invocation, [values](Context& context) {
    JobRule rule{values->name, values->hold_on_failure, {}};
    return CreateJob(context, std::move(rule));
  });
}

void AddJobDelete(CLI::App& app, Invocation& invocation) {
  auto id = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("job-delete", "delete a rule about a job");
  command->add_option("ID", *id, "id of the rule, as job-list shows it")->required()->type_name("");
  OnCommand(*command, invocation, [id](Context& context) { return DeleteJob(context, *id); });
}

}  // namespace

void RegisterJobs(CLI::App& app, Invocation& invocation) {
  AddListing(app, invocation, "job-list", "list the rules about jobs whose nodes are held when they fail",
             &JobListing);
  AddJobCreate(app, invocation);
  AddJobDelete(app, invocation);
}

}  // namespace nodepool::cli
