#include "listing/problem.h"

#include <algorithm>

namespace nodepool::listing {
namespace {

struct KindOfProblem {
  std::string_view kind;
  std::string_view command;  // KEY: that of the problem's subject
};

// The most urgent first.
constexpr KindOfProblem kKinds[] = {
    {"no-launcher", "journalctl -u nodepool-launcher -n 50"},
    {"no-builder", "journalctl -u nodepool-builder -n 50"},
    {"configuration-rejected", "nodepool config-validate"},
    {"provider-failing", "nodepool info KEY"},
    {"launcher-gone", "nodepool list --detail"},
    {"provider-unserved", "nodepool info KEY"},
    {"breaker-open", "nodepool info KEY"},
    {"label-unavailable", "nodepool label-list"},
    {"label-unoffered", "nodepool label-list"},
    {"runners-fault", "nodepool runners"},
    {"image-build-failed", "nodepool dib-image-list"},
    {"image-upload-failed", "nodepool image-list --detail"},
    {"image-too-old", "nodepool dib-image-list"},
    {"provider-notice", "nodepool info KEY"},
    {"runners-warning", "nodepool runners"},
    {"quota-full", "nodepool list --provider KEY"},
    {"slow-deletion", "nodepool list --provider KEY --state deleting"},
    {"short-stock", "nodepool label-list"},
    {"image-not-built", "nodepool image-status"},
    {"image-not-uploaded", "nodepool image-list --detail"},
    {"tenant-limit", "nodepool request-list --detail"},
    {"requests-waiting", "nodepool request-list --detail"},
    {"provider-paused", "nodepool provider-list"},
    {"runner-job-lost", "nodepool runners"},
};

const KindOfProblem* Find(std::string_view kind) {
  return std::ranges::find(kKinds, kind, &KindOfProblem::kind);
}

}  // namespace

std::string_view ToString(Problem::Severity severity) {
  return severity == Problem::Severity::kBad ? "bad" : "wait";
}

std::vector<std::string_view> SeverityWords() {
  return {ToString(Problem::Severity::kBad), ToString(Problem::Severity::kWait)};
}

std::vector<std::string_view> ProblemKinds() {
  std::vector<std::string_view> kinds;
  for (const KindOfProblem& kind : kKinds) kinds.push_back(kind.kind);
  return kinds;
}

std::size_t RankOf(const Problem& problem) {
  return static_cast<std::size_t>(Find(problem.kind) - std::begin(kKinds));
}

std::string CommandOf(const Problem& problem) {
  constexpr std::string_view kKey = "KEY";
  const KindOfProblem* kind = Find(problem.kind);
  if (kind == std::end(kKinds)) return "";
  std::string command(kind->command);
  std::size_t key = command.find(kKey);
  if (key != std::string::npos) command.replace(key, kKey.size(), problem.subject.key);
  return command;
}

}  // namespace nodepool::listing
