#include "runners/forgejo/waiting_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/bounded_fields.h"
#include "base/text.h"

namespace nodepool::runners::forgejo {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostListed = 1000;
constexpr std::size_t kMostLabels = 100;
constexpr std::int64_t kAttempts = 1000;  // of a job that can be told apart
constexpr int kNeededRelease = 15;

// It becomes a word of a command line.
bool IsHandle(std::string_view text) {
  auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  return !text.empty() && text.size() <= 100 && !text.starts_with('-') && std::ranges::all_of(text, is_good);
}

WaitingJob ReadWaitingJob(const json::object& object, const std::string& site,
                          const std::string& repository) {
  WaitingJob waiting{.handle = TextIn(object, "handle")};
  RunnerJob& job = waiting.job;
  job.request = WholeIn(object, "id") * kAttempts + WholeIn(object, "attempt") % kAttempts;
  job.job = ShortTextIn(object, "name");
  job.repository = repository.empty() ? fmt::format("repository {}", WholeIn(object, "repo_id")) : repository;
  if (!repository.empty()) job.run_url = fmt::format("{}/{}/actions", site, repository);
  if (const json::array* labels = ArrayIn(object, "runs_on")) {
    for (const json::value& label : *labels) {
      if (label.is_string() && waiting.labels.size() < kMostLabels)
        waiting.labels.emplace_back(label.get_string());
    }
  }
  return waiting;
}

}  // namespace

std::vector<WaitingJob> ReadWaitingJobs(const json::value& answer, const std::string& site,
                                        const std::string& repository) {
  std::vector<WaitingJob> jobs;
  if (!answer.is_array()) return jobs;
  for (const json::value& entry : answer.get_array()) {
    if (jobs.size() == kMostListed) break;
    const json::object* object = entry.if_object();
    if (object == nullptr || WholeIn(*object, "id") <= 0 || !IsHandle(TextIn(*object, "handle"))) continue;
    std::string status = TextIn(*object, "status");
    if (status.empty() || status == "waiting") jobs.push_back(ReadWaitingJob(*object, site, repository));
  }
  std::ranges::sort(jobs, {}, [](const WaitingJob& each) { return each.job.request; });
  return jobs;
}

std::string FaultOfVersion(const std::string& version) {
  int release = 0;
  std::from_chars(version.data(), version.data() + version.size(), release);
  if (release >= kNeededRelease) return "";
  bool is_gitea = version.find("gitea") == version.npos && release < 3;
  return fmt::format("{} {} cannot make a runner for one job by its API: Forgejo {} or newer is needed",
                     is_gitea ? "Gitea" : "Forgejo", Excerpt(version.empty() ? "(unknown)" : version),
                     kNeededRelease);
}

}  // namespace nodepool::runners::forgejo
