#include "driver/cloud/quota_cache.h"

#include "async/attempt.h"
#include "async/backoff.h"
#include "async/deadline.h"
#include "driver/cloud/metadata.h"
#include "store/cache/node_cache.h"

namespace nodepool::driver::cloud {

namespace {

constexpr Duration kMaxAge = std::chrono::seconds(300);
constexpr Duration kMinAge = std::chrono::seconds(1);  // however often it is invalidated
constexpr Duration kReadLimit = std::chrono::seconds(120);
constexpr Duration kFirstTryLimit = std::chrono::seconds(30);
constexpr Duration kLabelProbeInterval = std::chrono::minutes(5);
constexpr Backoff::Settings kRetryPauses{std::chrono::seconds(1), std::chrono::seconds(60)};

}  // namespace

QuotaCache::QuotaCache(Loop& loop, Random& random, Adapter& adapter, ProviderName provider,
                       const store::NodeCache& nodes, std::function<void()> changed)
    : loop_(loop),
      random_(random),
      adapter_(adapter),
      provider_(std::move(provider)),
      nodes_(nodes),
      changed_(std::move(changed)) {}

Task<> QuotaCache::Run() {
  Backoff pauses(kRetryPauses, random_);
  while (true) {
    invalidated_.Reset();
    Outcome<> read = co_await Attempt(Refresh());
    tried_.Set();
    if (!read) {
      Duration pause = pauses.Next();
      logger_.Warning("The quota of provider {} could not be read; the last known one stays in use: {}",
                      provider_, read.error().message());
      co_await loop_.SleepFor(pause);
    } else {
      pauses.Reset();
      co_await loop_.SleepFor(kMinAge);
      co_await WaitForInvalidation();
    }
  }
}

Task<> QuotaCache::WaitForFirstTry() {
  SteadyTime deadline = loop_.SteadyNow() + kFirstTryLimit;
  bool is_tried = co_await EndsBy(loop_, deadline, "the first read of the quota", tried_.Wait());
  if (!is_tried) {
    logger_.Warning("Provider {} has not reported its quota yet; it counts as unlimited until then",
                    provider_);
  }
}

Task<> QuotaCache::WaitForInvalidation() {
  SteadyTime deadline = loop_.SteadyNow() + kMaxAge;
  co_await EndsBy(loop_, deadline, "a reason to read the quota again", invalidated_.Wait());
}

Task<> QuotaCache::Refresh() {
  SteadyTime deadline = loop_.SteadyNow() + kReadLimit;
  co_await WithDeadline(loop_, deadline, "reading the quota", Read());
}

Task<> QuotaCache::Read() {
  QuotaInformation available = co_await adapter_.QuotaLimits();
  std::vector<Instance> instances = co_await adapter_.ListInstances();
  QuotaInformation others;
  for (const Instance& instance : instances) {
    if (!IsOurs(instance)) others.Add(instance.quota);
  }
  available.Subtract(others);
  bool is_same =
      available.resources() == available_.resources() && others.resources() == used_by_others_.resources();
  if (is_same) co_return;
  available_ = std::move(available);
  used_by_others_ = std::move(others);
  changed_();
}

bool QuotaCache::IsOurs(const Instance& instance) const {
  auto owner = OwnerOf(instance.metadata);
  if (owner.provider != provider_.str() || !owner.node) return false;
  // Before the cache is complete, an unknown node proves nothing.
  return nodes_.Find(*owner.node) != nullptr || !nodes_.synced();
}

LabelNeeds::LabelNeeds(TaskGroup& group, Adapter& adapter, std::function<void()> changed)
    : group_(group), adapter_(adapter), changed_(std::move(changed)) {}

const QuotaInformation& LabelNeeds::For(const LabelConfig& label) {
  if (auto known = needs_.find(&label); known != needs_.end()) return known->second;
  if (auto failed = errors_.find(&label); failed != errors_.end()) throw failed->second;
  try {
    return needs_.emplace(&label, adapter_.QuotaForLabel(label)).first->second;
  } catch (const Error& error) {
    if (error.verdict() != Verdict::kInvalid) throw;
    logger_.Error("Label {} is unavailable until its configuration or the cloud is fixed: {}", label.name,
                  error.message());
    errors_.emplace(&label, error);
    group_.Spawn("probe label " + label.name.str(), ClearErrorLater(&label));
    throw;
  }
}

Task<> LabelNeeds::ClearErrorLater(const LabelConfig* label) {
  co_await group_.loop().SleepFor(kLabelProbeInterval);
  errors_.erase(label);
  changed_();
}

}  // namespace nodepool::driver::cloud
