#include "runners/github/repositories.h"

#include <fmt/format.h>

#include "async/attempt.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "net/http/url.h"

namespace nodepool::runners::github {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostKnown = 10'000;
constexpr Duration kVisibilityKnown = std::chrono::hours(1);
constexpr std::size_t kMostInstalled = 1000;
constexpr std::string_view kArchive = "actions-runner-linux-x64-";
constexpr std::string_view kArchiveEnd = ".tar.gz";
constexpr std::size_t kLongestVersion = 20;

bool IsVersion(std::string_view text) {
  return !text.empty() && text.size() <= kLongestVersion &&
         text.find_first_not_of("0123456789.") == text.npos;
}

}  // namespace

std::string RepositoryPath(const std::string& repository) {
  std::size_t slash = repository.find('/');
  std::string name = slash == repository.npos ? "" : repository.substr(slash + 1);
  return fmt::format("/repos/{}/{}", net::PercentEncoded(repository.substr(0, slash)),
                     net::PercentEncoded(name));
}

// A public repository is visible to everybody, so one that is not found is none.
Task<bool> Repositories::IsPublic(std::string repository) {
  SteadyTime now = loop_.SteadyNow();
  auto known = visibilities_.find(repository);
  if (known != visibilities_.end() && now < known->second.until) co_return known->second.is_public;
  if (repository.find('/') == repository.npos) co_return false;
  RestCall call{.kind = "repository", .target = RepositoryPath(repository)};
  Outcome<net::HttpReply> reply = co_await Attempt(login_.Send(std::move(call)));
  bool is_missing = FailedWith(reply, Verdict::kNotFound);
  if (!reply && !is_missing) reply.error().Rethrow();
  bool is_public = false;
  if (!is_missing) {
    json::value body = ReadJson("the repository", *reply);
    is_public =
        body.is_object() && body.get_object().contains("private") && !TruthIn(body.get_object(), "private");
  }
  if (visibilities_.size() >= kMostKnown) visibilities_.clear();
  visibilities_.insert_or_assign(std::move(repository), Visibility{is_public, now + kVisibilityKnown});
  co_return is_public;
}

void Repositories::NoteRun(const std::string& repository, std::int64_t run, const std::string& head) {
  if (are_of_forks_.size() >= kMostKnown) are_of_forks_.clear();
  are_of_forks_.insert_or_assign({repository, run}, Lower(head) != Lower(repository));
}

Task<bool> Repositories::IsOfFork(std::string repository, std::int64_t run) {
  auto known = are_of_forks_.find({repository, run});
  if (known != are_of_forks_.end()) co_return known->second;
  RestCall call{.kind = "run", .target = fmt::format("{}/actions/runs/{}", RepositoryPath(repository), run)};
  Outcome<net::HttpReply> reply = co_await Attempt(login_.Send(std::move(call)));
  if (FailedWith(reply, Verdict::kNotFound)) co_return true;
  if (!reply) reply.error().Rethrow();
  json::value body = ReadJson("the run", *reply);
  const json::object* head = ObjectIn(body, "head_repository");
  NoteRun(repository, run, head == nullptr ? "" : TextIn(*head, "full_name"));
  co_return are_of_forks_.at({repository, run});
}

// "actions-runner-linux-x64-2.330.0.tar.gz".
Task<std::string> Repositories::NewestRunner(std::string actions) {
  RestCall call{.kind = "downloads", .target = actions + "/runners/downloads"};
  Outcome<net::HttpReply> reply = co_await Attempt(login_.Send(std::move(call)));
  if (FailedWith(reply, Verdict::kNotFound)) co_return "";
  if (!reply) reply.error().Rethrow();
  json::value body = ReadJson("the runner's downloads", *reply);
  if (!body.is_array()) co_return "";
  for (const json::value& entry : body.get_array()) {
    std::string file = entry.is_object() ? TextIn(entry.get_object(), "filename") : "";
    if (!file.starts_with(kArchive) || !file.ends_with(kArchiveEnd)) continue;
    std::string version = file.substr(kArchive.size(), file.size() - kArchive.size() - kArchiveEnd.size());
    if (IsVersion(version)) co_return version;
  }
  co_return "";
}

Task<std::vector<std::string>> Repositories::Installed() {
  std::vector<std::string> names;
  for (std::size_t page = 1; names.size() < kMostInstalled; ++page) {
    RestCall call{.kind = "repositories",
                  .target = fmt::format("/installation/repositories?per_page={}&page={}", kRestPage, page)};
    net::HttpReply reply = co_await login_.Send(std::move(call));
    json::value body = ReadJson("the repositories", reply);
    const json::array* entries = ArrayIn(body, "repositories");
    if (entries == nullptr || entries->empty()) break;
    for (const json::value& entry : *entries) {
      std::string name = entry.is_object() ? TextIn(entry.get_object(), "full_name") : "";
      if (name.find('/') != name.npos) names.push_back(std::move(name));
    }
    if (entries->size() < kRestPage) break;
  }
  co_return names;
}

}  // namespace nodepool::runners::github
