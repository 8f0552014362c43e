#include "driver/cloud/quota/quota_cache.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <utility>

#include "async/backoff.h"
#include "async/deadline.h"
#include "async/task.h"
#include "base/text.h"
#include "driver/cloud/api/api_error.h"
#include "driver/cloud/metadata.h"
#include "driver/records_environment.h"

namespace nodepool::driver::cloud {

namespace {

constexpr Duration kProbeInterval = std::chrono::minutes(5);

}  // namespace

LabelNeeds::LabelNeeds(TaskGroup& group, Adapter& adapter, std::function<void()> changed)
    : group_(group), adapter_(adapter), changed_(std::move(changed)) {}

QuotaInformation LabelNeeds::For(const LabelConfig& label) {
  LabelKey key = label.key();
  if (auto known = needs_.find(key); known != needs_.end()) return known->second;
  if (auto fault = faults_.find(key); fault != faults_.end() && !fault->second.is_doubted)
    throw fault->second.error;
  try {
    QuotaInformation need = adapter_.QuotaForLabel(label);
    faults_.erase(key);
    return needs_.emplace(std::move(key), std::move(need)).first->second;
  } catch (const Error& error) {
    if (error.verdict() == Verdict::kInvalid) Note(label, error);
    throw;
  }
}

void LabelNeeds::Note(const LabelConfig& label, const Error& error) {
  auto known = faults_.find(label.key());
  bool is_same = known != faults_.end() && known->second.error.message() == error.message();
  if (is_same) {
    known->second.is_doubted = false;
    return;
  }
  logger_.Error("Label {} is unavailable until its configuration or the cloud is fixed: {}", label.name,
                error.message());
  std::uint64_t number = ++fault_count_;
  faults_.insert_or_assign(label.key(), Fault{error, number});
  group_.Spawn("probe label " + label.name.str(), ClearFaultLater(label.key(), number));
}

bool LabelNeeds::IsInError(const LabelConfig& label) const {
  auto fault = faults_.find(label.key());
  return fault != faults_.end() && !fault->second.is_doubted;
}

void LabelNeeds::DoubtFaults() {
  for (auto& [label, fault] : faults_) fault.is_doubted = true;
}

void LabelNeeds::Clear() {
  needs_.clear();
  if (!std::exchange(faults_, {}).empty()) changed_();
}

Task<> LabelNeeds::ClearFaultLater(LabelKey label, std::uint64_t number) {
  co_await group_.loop().SleepFor(kProbeInterval);
  auto fault = faults_.find(label);
  if (fault == faults_.end() || fault->second.number != number) co_return;
  faults_.erase(fault);
  changed_();
}

namespace {

constexpr std::size_t kMaxNamed = 3;

}  // namespace

bool Shortages::Contains(const std::string& candidate, SteadyTime now) const {
  auto found = since_.find(candidate);
  return found != since_.end() && now - found->second < kLast;
}

std::optional<std::size_t> Shortages::Next(const std::vector<std::string>& candidates,
                                           const std::set<std::size_t>& tried, SteadyTime now) const {
  std::optional<std::size_t> oldest;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (tried.contains(i)) continue;
    if (!Contains(candidates[i], now)) return i;
    if (!oldest || since_.at(candidates[i]) < since_.at(candidates[*oldest])) oldest = i;
  }
  return oldest;
}

CandidateChoice::CandidateChoice(std::vector<std::string> candidates, Shortages& shortages, SteadyTime now)
    : candidates_(std::move(candidates)), shortages_(shortages) {
  index_ = shortages_.Next(candidates_, tried_, now).value_or(0);
}

std::string CandidateChoice::Explain(SteadyTime now, WallTime wall) const {
  if (candidates_.empty()) return "";
  std::vector<std::string> passed_over;
  std::size_t count = 0;
  for (std::size_t i = 0; i < index_; ++i) {
    if (!shortages_.Contains(candidates_[i], now) || ++count > kMaxNamed) continue;
    auto until = std::chrono::floor<std::chrono::seconds>(wall + (shortages_.Until(candidates_[i]) - now));
    passed_over.push_back(fmt::format("{} until {:%H:%M} UTC", candidates_[i],
                                      fmt::gmtime(std::chrono::system_clock::to_time_t(until))));
  }
  if (passed_over.empty()) return name() + (index_ == 0 ? ", the first choice" : "");
  std::string more = count > kMaxNamed ? fmt::format(" and {} others", count - kMaxNamed) : "";
  return fmt::format("{}; no capacity for {}{}", name(), Join(passed_over, ", "), more);
}

std::string CandidateChoice::Why(SteadyTime now) const {
  std::vector<std::string> passed_over;
  for (std::size_t i = 0; i < index_; ++i) {
    if (shortages_.Contains(candidates_[i], now)) passed_over.push_back(candidates_[i]);
  }
  return passed_over.empty() ? "" : "; no capacity for " + Join(passed_over, ", ");
}

bool CandidateChoice::MoveOn(SteadyTime now) {
  if (candidates_.empty()) return false;
  shortages_.Add(name(), now);
  tried_.insert(index_);
  std::optional<std::size_t> next = shortages_.Next(candidates_, tried_, now);
  if (next) index_ = *next;
  return next.has_value();
}

namespace {

constexpr Duration kMaxAge = std::chrono::seconds(300);
constexpr Duration kMinAge = std::chrono::seconds(1);      // however often it is invalidated
constexpr Duration kLingering = std::chrono::seconds(60);  // of deleted machines in a cloud's lists
constexpr Duration kReadLimit = std::chrono::seconds(120);
constexpr Duration kFirstTryLimit = std::chrono::seconds(30);
constexpr Backoff::Settings kRetryPauses{.initial = std::chrono::seconds(1), .max = std::chrono::seconds(30)};

}  // namespace

QuotaCache::QuotaCache(const ProviderEnvironment& environment, Adapter& adapter, ProviderName provider)
    : environment_(environment), adapter_(adapter), provider_(std::move(provider)) {
  removals_ = environment_.records.nodes.OnChange(
      [this](const NodeId& id, const store::StoredNode* before, const store::StoredNode* after) {
        if (after == nullptr && before != nullptr && before->record.provider == provider_) NoteRemoval(id);
      });
}

void QuotaCache::Doubt(std::string cause) {
  is_doubted_ = true;
  if (!std::exchange(is_away_, true)) environment_.report_fault(ProviderFault{std::move(cause), {}, true});
  Invalidate();
}

Task<> QuotaCache::WaitUntilBack() {
  while (is_away_ && !is_stopping_) co_await back_.Wait();
  if (is_away_) {
    throw Error(Verdict::kQuota,
                fmt::format("provider {} is being stopped and could not be used", provider_));
  }
}

void QuotaCache::EndWaits() {
  is_stopping_ = true;
  back_.NotifyAll();
}

Task<> QuotaCache::Run() {
  Loop& loop = environment_.loop;
  Backoff pauses(kRetryPauses, environment_.random);
  while (true) {
    invalidated_.Reset();
    is_doubted_ = false;
    Outcome<> read = co_await Attempt(Refresh());
    NoteEnd(read);
    if (!read) {
      SteadyTime next_attempt = loop.SteadyNow() + pauses.Next();
      environment_.report_fault(ProviderFault{read.error().message(), next_attempt, is_away_});
      tried_.Set();
      co_await loop.SleepUntil(next_attempt);
    } else {
      pauses.Reset();
      if (!is_away_) environment_.report_fault(std::nullopt);
      tried_.Set();
      co_await loop.SleepFor(kMinAge);
      co_await WaitForInvalidation();
    }
  }
}

// A cloud that answers anything else than an outage is there, also if it refuses to say the quota.
void QuotaCache::NoteEnd(const Outcome<>& read) {
  bool is_outage = !read && (IsOutage(read.error().verdict()) || FailedWith(read, Verdict::kTimedOut));
  if (is_outage) ++outages_;
  if (is_outage || is_doubted_) return;
  is_away_ = false;
  back_.NotifyAll();
}

Task<> QuotaCache::WaitForFirstTry() {
  SteadyTime deadline = environment_.loop.SteadyNow() + kFirstTryLimit;
  bool is_tried = co_await EndsBy(environment_.loop, deadline, "the first read of the quota", tried_.Wait());
  if (!is_tried) environment_.report_fault(ProviderFault{"its cloud has not answered for 30 s"});
}

Task<> QuotaCache::WaitForInvalidation() {
  SteadyTime deadline = environment_.loop.SteadyNow() + kMaxAge;
  co_await EndsBy(environment_.loop, deadline, "a reason to read the quota again", invalidated_.Wait());
}

Task<> QuotaCache::Refresh() {
  SteadyTime deadline = environment_.loop.SteadyNow() + kReadLimit;
  co_await WithDeadline(environment_.loop, deadline, "reading the quota", Read());
}

Task<> QuotaCache::Read() {
  QuotaInformation available = co_await adapter_.QuotaLimits();
  bool is_list_due = std::exchange(is_list_wanted_, false) || environment_.loop.SteadyNow() >= list_due_;
  if (is_list_due) {
    list_due_ = {};
    machines_of_others_ = co_await ReadMachinesOfOthers();
    list_due_ = environment_.loop.SteadyNow() + kMaxAge;
  }
  std::optional<QuotaInformation> followed = adapter_.UsedByOthers();
  follows_others_ = followed.has_value();
  QuotaInformation others = followed.value_or(machines_of_others_);
  available.Subtract(others);
  is_known_ = true;
  bool is_same =
      available.resources() == available_.resources() && others.resources() == used_by_others_.resources();
  if (is_same) co_return;
  available_ = std::move(available);
  used_by_others_ = std::move(others);
  environment_.capacity_changed();
}

Task<QuotaInformation> QuotaCache::ReadMachinesOfOthers() {
  std::vector<Instance> instances = co_await adapter_.ListInstances();
  QuotaInformation others;
  for (const Instance& instance : instances) {
    if (!IsOurs(instance)) others.Add(instance.quota);
  }
  co_return others;
}

bool QuotaCache::IsOurs(const Instance& instance) const {
  auto owner = OwnerOf(instance.metadata);
  if (owner.provider != provider_.str() || !owner.node) return false;
  // Before the cache is complete, an unknown node proves nothing.
  const store::NodeCache& nodes = environment_.records.nodes;
  if (nodes.Find(*owner.node) != nullptr || !nodes.synced()) return true;
  auto removed = removed_.find(*owner.node);
  return removed != removed_.end() && environment_.loop.SteadyNow() < removed->second + kLingering;
}

void QuotaCache::NoteRemoval(const NodeId& id) {
  SteadyTime now = environment_.loop.SteadyNow();
  for (; !removals_in_order_.empty() && removals_in_order_.front().when + kLingering <= now;
       removals_in_order_.pop_front()) {
    removed_.erase(removals_in_order_.front().node);
  }
  if (removed_.emplace(id, now).second) removals_in_order_.push_back({id, now});
}

}  // namespace nodepool::driver::cloud
