#include "drivers/openstack/storage/cloud_images.h"

#include <algorithm>

#include "async/attempt.h"
#include "async/backoff.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "drivers/openstack/api/lookups.h"

namespace nodepool::drivers::openstack {

using driver::Readiness;

namespace {

constexpr Duration kFresh = std::chrono::seconds(5);
constexpr Backoff::Settings kListingPauses{kFresh, std::chrono::seconds(300), 2.0, 0.0};

}  // namespace

CloudImages::CloudImages(Session& session, TaskGroup& tasks, Random& random, std::set<std::string> names,
                         std::function<void()> refreshed)
    : session_(session),
      tasks_(tasks),
      random_(random),
      names_(std::move(names)),
      refreshed_(std::move(refreshed)) {}

const CloudImages::Finding* CloudImages::Known(const std::string& name) const {
  auto found = findings_.find(name);
  if (found == findings_.end()) return nullptr;
  const Finding& finding = found->second;
  bool is_old = finding.is_doubted || tasks_.loop().SteadyNow() - finding.checked >= kFresh;
  return finding.id.empty() && is_old ? nullptr : &finding;
}

std::vector<std::string> CloudImages::Unknown() const {
  std::vector<std::string> unknown;
  std::ranges::copy_if(names_, std::back_inserter(unknown),
                       [this](const std::string& name) { return Known(name) == nullptr; });
  return unknown;
}

std::vector<std::string> CloudImages::Missing() const {
  std::vector<std::string> missing;
  std::ranges::copy_if(names_, std::back_inserter(missing), [this](const std::string& name) {
    auto found = findings_.find(name);
    return found == findings_.end() || found->second.id.empty();
  });
  return missing;
}

Task<std::string> CloudImages::Id(std::string name) {
  names_.insert(name);
  const Finding* finding = Known(name);
  while (finding == nullptr) {
    if (is_refreshing_) {
      co_await refreshed_once_.Wait();
    } else {
      co_await RefreshOnce();
    }
    finding = Known(name);
  }
  if (finding->id.empty()) throw Error(Verdict::kInvalid, finding->problem);
  co_return finding->id;
}

Readiness CloudImages::ReadinessOf(const std::string& name) {
  if (const Finding* finding = Known(name)) {
    return finding->id.empty() ? Readiness::kNotReady : Readiness::kReady;
  }
  names_.insert(name);
  SteadyTime now = tasks_.loop().SteadyNow();
  if (!is_refreshing_ && (!last_refresh_ || now - *last_refresh_ >= kFresh)) {
    last_refresh_ = now;
    tasks_.Spawn("find images", Refresh());
  }
  return Readiness::kUnknown;
}

// The answer of a refresh that is under way may be older than the question.
Task<> CloudImages::LookAgain() {
  while (is_refreshing_) co_await refreshed_once_.Wait();
  for (auto& [name, finding] : findings_) finding.is_doubted = true;
  co_await RefreshOnce();
}

void CloudImages::Clear() {
  findings_.clear();
  ++generation_;
  last_refresh_.reset();
}

Task<> CloudImages::Refresh() {
  Outcome<> refreshed = co_await Attempt(RefreshOnce());
  std::string failure = refreshed ? "" : refreshed.error().message();
  bool is_new = std::exchange(last_failure_, failure) != failure;
  if (is_new && !failure.empty()) {
    logger_.Error("Images of cloud {} could not be listed; trying again later: {}", session_.cloud().name,
                  failure);
  }
}

// The only place that reads images; one call at a time.
Task<> CloudImages::RefreshOnce() {
  while (is_refreshing_) co_await refreshed_once_.Wait();
  std::vector<std::string> names = Unknown();
  if (names.empty()) co_return;
  WatchMissing();
  is_refreshing_ = true;
  ScopeExit end([this] {
    is_refreshing_ = false;
    refreshed_once_.NotifyAll();
  });
  last_refresh_ = tasks_.loop().SteadyNow();
  std::uint64_t generation = generation_;
  std::vector<std::string> wanted = names;
  std::map<std::string, std::vector<std::string>> found =
      co_await FindActiveImages(session_, std::move(wanted));
  if (generation != generation_) co_return;
  for (const std::string& name : names) Note(name, found[name]);
  WatchMissing();
  refreshed_();
}

void CloudImages::Note(const std::string& name, const std::vector<std::string>& ids) {
  Finding& finding = findings_[name];
  bool was_missing = !finding.problem.empty();
  finding.checked = tasks_.loop().SteadyNow();
  finding.is_doubted = false;
  finding.id = ids.size() == 1 ? ids.front() : "";
  finding.problem.clear();
  const std::string& cloud = session_.cloud().name;
  if (ids.empty()) finding.problem = "cloud " + cloud + " has no active image " + Excerpt(name);
  if (ids.size() > 1)
    finding.problem = "Multiple matches found for image " + Excerpt(name) + " in cloud " + cloud;
  if (!was_missing && !finding.problem.empty())
    logger_.Warning("{}; its labels are not available until there is one", finding.problem);
  if (was_missing && !finding.id.empty()) logger_.Info("Cloud {} has image {} now", cloud, Excerpt(name));
}

// Newly missing images are checked soon, however long the pauses of the others are by now.
void CloudImages::WatchMissing() {
  std::vector<std::string> missing = Missing();
  bool has_more =
      std::ranges::any_of(missing, [this](const std::string& name) { return !watched_.contains(name); });
  watched_ = {missing.begin(), missing.end()};
  if (has_more) tasks_.Spawn("find missing images", Watch(++watches_));
}

Task<> CloudImages::Watch(std::uint64_t number) {
  Backoff pauses(kListingPauses, random_);
  while (true) {
    Duration pause = pauses.Next();
    co_await tasks_.loop().SleepFor(pause);
    if (number != watches_ || watched_.empty()) co_return;
    co_await Refresh();
  }
}

}  // namespace nodepool::drivers::openstack
