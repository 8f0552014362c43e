#include "listing/find_problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "listing/delayed_requests.h"

namespace nodepool::listing {
namespace {

// What is bad, what delays most requests, what its kind says, what lasts longest.
bool IsWorse(const Problem& a, const Problem& b) {
  auto rank = [](const Problem& problem) {
    return std::tuple(problem.severity, -static_cast<std::ptrdiff_t>(problem.delayed_requests),
                      RankOf(problem), problem.since.value_or(WallTime::max()));
  };
  return rank(a) < rank(b);
}

}  // namespace

std::string Counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string InOneLine(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

bool Runs(const StatusRecords& records, ComponentKind kind) {
  return std::ranges::any_of(records.caches.components.all(),
                             [kind](const auto& entry) { return entry.second.kind == kind; });
}

std::string_view HostOf(std::string_view launcher_id) {
  std::size_t end = launcher_id.find("-PoolWorker.");
  return end == std::string_view::npos ? std::string_view() : launcher_id.substr(0, end);
}

Problems FindProblems(const StatusRecords& records) {
  Problems problems;
  for (auto* find : {&FindDaemonProblems, &FindProviderProblems, &FindLabelProblems, &FindImageProblems,
                     &FindRequestProblems, &FindRunnerProblems}) {
    find(problems, records);
  }
  CountDelayedRequests(problems, records);
  for (Problem& problem : problems) problem.command = CommandOf(problem);
  std::ranges::stable_sort(problems, IsWorse);
  return problems;
}

}  // namespace nodepool::listing
