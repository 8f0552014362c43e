#include <fmt/format.h>

#include "base/text.h"
#include "listing/find_problems.h"

namespace nodepool::listing {
namespace {

constexpr std::size_t kShownFault = 400;
constexpr Duration kLostShown = std::chrono::hours(1);

// What services and nodes say, in one line.
std::string Shown(const std::string& text) { return Excerpt(InOneLine(text), kShownFault); }

void AddFault(Problems& out, const std::string& name, const RunnerSetRecord& set) {
  if (set.fault.empty()) return;
  out.push_back({.kind = "runners-fault",
                 .name = name,
                 .since = set.since,
                 .subject = {"runners", name},
                 .text = fmt::format("The runners {} do not work: {}", Visible(name), Shown(set.fault)),
                 .remedy = set.remedy.empty() ? "The log of nodepool-runners says more" : Shown(set.remedy)});
}

void AddWarnings(Problems& out, const std::string& name, const RunnerSetRecord& set) {
  if (set.warnings.empty()) return;
  out.push_back({.kind = "runners-warning",
                 .name = name,
                 .severity = Problem::Severity::kWait,
                 .subject = {"runners", name},
                 .text = fmt::format("The runners {}: {}", Visible(name), Shown(Join(set.warnings, "; "))),
                 .remedy = "Correct the image or the configuration of the set"});
}

void AddLost(Problems& out, const std::string& name, const RunnerSetRecord& set, WallTime now) {
  for (const LostJob& lost : set.lost) {
    if (!lost.time || now - *lost.time > kLostShown) continue;
    out.push_back({.kind = "runner-job-lost",
                   .name = name + "/" + lost.node.value,
                   .severity = Problem::Severity::kWait,
                   .since = lost.time,
                   .subject = {"runner_jobs", {}},
                   .text = fmt::format("The job {} was lost on node {}: {}", DescribeJob(lost.job),
                                       Visible(lost.node.value), Shown(lost.reason)),
                   .remedy = "Run it again in the service, which fails it after some minutes and does not "
                             "repeat it"});
  }
}

}  // namespace

void FindRunnerProblems(Problems& out, const StatusRecords& records) {
  for (const auto& [key, set] : records.caches.runners.sets()) {
    AddFault(out, key.str(), set);
    AddWarnings(out, key.str(), set);
    AddLost(out, key.str(), set, records.now);
  }
}

}  // namespace nodepool::listing
