#include "runners/github/job_lists.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bounded_fields.h"
#include "runners/github/messages.h"

namespace nodepool::runners::github {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostPages = 10;
constexpr int kNotModified = 304;

const json::array& EntriesIn(const json::value& body, std::string_view key) {
  static const json::array none;
  const json::array* entries = ArrayIn(body, key);
  return entries == nullptr ? none : *entries;
}

}  // namespace

// A run that goes on has jobs that wait, too.
Task<JobLists::Listed> JobLists::JobsOf(std::string repository) {
  ++round_;
  Listed listed;
  std::vector<std::int64_t> runs;
  for (const char* status : {"queued", "in_progress"})
    co_await AddRuns(repository, status, runs, listed.is_whole);
  std::ranges::sort(runs);
  runs.erase(std::ranges::unique(runs).begin(), runs.end());
  for (std::int64_t run : runs) co_await AddJobs(repository, run, listed);
  std::erase_if(pages_[repository], [this](const auto& entry) { return entry.second.round != round_; });
  co_return listed;
}

Task<> JobLists::AddRuns(const std::string& repository, std::string status, std::vector<std::int64_t>& runs,
                         bool& is_whole) {
  for (std::size_t number = 1; number <= kMostPages; ++number) {
    Page page = co_await Read(repository,
                              fmt::format("runs?status={}&per_page={}&page={}", status, kRestPage, number));
    runs.insert(runs.end(), page.runs.begin(), page.runs.end());
    if (page.entries < kRestPage) co_return;
  }
  is_whole = false;
}

Task<> JobLists::AddJobs(const std::string& repository, std::int64_t run, Listed& listed) {
  for (std::size_t number = 1; number <= kMostPages; ++number) {
    Page page = co_await Read(
        repository, fmt::format("runs/{}/jobs?filter=latest&per_page={}&page={}", run, kRestPage, number));
    listed.jobs.insert(listed.jobs.end(), page.jobs.begin(), page.jobs.end());
    if (page.entries < kRestPage) co_return;
  }
  listed.is_whole = false;
}

Task<JobLists::Page> JobLists::Read(const std::string& repository, std::string target) {
  ++call_count_;
  RestCall call{.kind = kKind, .target = fmt::format("{}/actions/{}", RepositoryPath(repository), target)};
  call.etag = pages_[repository][target].etag;
  net::HttpReply reply = co_await login_.Send(std::move(call));
  Page& page = pages_[repository][target];
  page.round = round_;
  if (reply.status != kNotModified) Parse(repository, reply, page);
  co_return page;
}

void JobLists::Parse(const std::string& repository, const net::HttpReply& reply, Page& page) {
  json::value body = ReadJson("a list of jobs", reply);
  const json::array& runs = EntriesIn(body, "workflow_runs");
  const json::array& jobs = EntriesIn(body, "jobs");
  page = {.etag = reply.Header("etag"), .entries = runs.size() + jobs.size(), .round = round_};
  for (const json::value& entry : runs) {
    std::int64_t run = entry.is_object() ? WholeIn(entry.get_object(), "id") : 0;
    if (run <= 0 || page.runs.size() == kRestPage) continue;
    page.runs.push_back(run);
    const json::object* head = ObjectIn(entry, "head_repository");
    repositories_.NoteRun(repository, run, head == nullptr ? "" : TextIn(*head, "full_name"));
  }
  for (const json::value& entry : jobs) {
    if (!entry.is_object() || page.jobs.size() == kRestPage) continue;
    if (auto job = ReadWorkflowJob(entry.get_object(), repository)) page.jobs.push_back(std::move(*job));
  }
}

}  // namespace nodepool::runners::github
