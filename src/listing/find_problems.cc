#include "listing/find_problems.h"

#include <fmt/format.h>

#include <algorithm>

namespace nodepool::listing {

std::string_view ToString(Problem::Severity severity) {
  return severity == Problem::Severity::kBad ? "bad" : "wait";
}

std::vector<std::string_view> SeverityWords() {
  return {ToString(Problem::Severity::kBad), ToString(Problem::Severity::kWait)};
}

std::vector<std::string_view> ProblemKinds() {
  return {"no-launcher",         "no-builder",         "configuration-rejected", "launcher-gone",
          "provider-failing",    "provider-notice",    "provider-unserved",      "provider-paused",
          "quota-full",          "slow-deletion",      "label-unavailable",      "label-unoffered",
          "short-stock",         "image-build-failed", "image-not-built",        "image-too-old",
          "image-upload-failed", "image-not-uploaded", "tenant-limit",           "requests-waiting"};
}

std::string Counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string InOneLine(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

bool Runs(const StatusRecords& records, ComponentKind kind) {
  return std::ranges::any_of(records.components,
                             [kind](const auto& entry) { return entry.second.kind == kind; });
}

std::string_view HostOf(std::string_view launcher_id) {
  std::size_t end = launcher_id.find("-PoolWorker.");
  return end == std::string_view::npos ? std::string_view() : launcher_id.substr(0, end);
}

Problems FindProblems(const StatusRecords& records) {
  Problems problems;
  for (auto* find : {&FindDaemonProblems, &FindProviderProblems, &FindLabelProblems, &FindImageProblems,
                     &FindRequestProblems}) {
    find(problems, records);
  }
  std::ranges::stable_sort(problems, {}, &Problem::severity);
  return problems;
}

}  // namespace nodepool::listing
