#include "sched/requests/reason.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace nodepool::sched {

std::string_view ToString(Reason reason) {
  switch (reason) {
    case Reason::kNone:
      return "";
    case Reason::kPoolDisabled:
      return "pool is disabled by max_servers";
    case Reason::kProviderPaused:
      return "the provider is paused";
    case Reason::kLabelNotAvailable:
      return "node type(s) not available";
    case Reason::kImageNotAvailable:
      return "images are not available";
    case Reason::kExceedsQuota:
      return "it would exceed quota";
    case Reason::kNotRequested:
      return "the request is not waiting";
    case Reason::kDeclinedBefore:
      return "this pool declined it before";
    case Reason::kOtherProviderWanted:
      return "it asks for another provider";
    case Reason::kPreferredPool:
      return "a pool with a smaller priority number can take it";
    case Reason::kOthersCanServe:
      return "this pool lacks a label, another pool has it";
    case Reason::kBreakerOpen:
      return "launches fail in this pool, another pool can take it";
    case Reason::kNoFreeNode:
      return "no node of the label is free";
    case Reason::kTenantLimit:
      return "the tenant's limit is reached";
    case Reason::kCapacityReserved:
      return "an earlier request waits for the same capacity";
    case Reason::kLaunchesInProgress:
      return "max-concurrency is reached";
    case Reason::kProviderFault:
      return "the provider cannot say now whether it has the label";
    case Reason::kProviderUnusable:
      return "the provider cannot be used";
  }
  return "";
}

namespace {

// What the reason is said of.
enum class Subject { kPool, kProvider, kRequest };

struct Code {
  std::string_view word;
  Subject subject;
};

// In the order in which they decide: what ends by itself, limits, faults, what only an operator ends, and at
// last what leaves the request to others.
constexpr Code kCodes[] = {
    {kCapacityCode, Subject::kPool},          {"launches-in-progress", Subject::kProvider},
    {"tenant-limit", Subject::kRequest},      {"capacity-reserved", Subject::kPool},
    {"no-free-node", Subject::kPool},         {"provider-unusable", Subject::kProvider},
    {"provider-fault", Subject::kPool},       {"provider-paused", Subject::kProvider},
    {"image-not-available", Subject::kPool},  {"label-not-available", Subject::kPool},
    {"exceeds-quota", Subject::kPool},        {"pool-disabled", Subject::kPool},
    {kSilentLauncherCode, Subject::kRequest}, {kNoLauncherCode, Subject::kRequest},
    {"preferred-pool", Subject::kRequest},    {"other-provider-wanted", Subject::kRequest},
    {"others-can-serve", Subject::kRequest},  {"breaker-open", Subject::kPool},
    {"declined-before", Subject::kPool},      {"not-requested", Subject::kPool},
};

constexpr std::size_t IndexOf(std::string_view word) {
  for (std::size_t i = 0; i < std::size(kCodes); ++i) {
    if (kCodes[i].word == word) return i;
  }
  return std::size(kCodes);
}

constexpr std::size_t kUnknown = IndexOf("provider-fault");
constexpr std::size_t kFirstLeftToOthers = IndexOf("preferred-pool");

std::size_t PlaceOf(std::string_view word) {
  std::size_t index = IndexOf(word);
  return index < std::size(kCodes) ? index : kUnknown;
}

}  // namespace

std::string_view CodeOf(Reason reason) {
  switch (reason) {
    case Reason::kNone:
      return "none";
    case Reason::kPoolDisabled:
      return "pool-disabled";
    case Reason::kProviderPaused:
      return "provider-paused";
    case Reason::kLabelNotAvailable:
      return "label-not-available";
    case Reason::kImageNotAvailable:
      return "image-not-available";
    case Reason::kExceedsQuota:
      return "exceeds-quota";
    case Reason::kNotRequested:
      return "not-requested";
    case Reason::kDeclinedBefore:
      return "declined-before";
    case Reason::kOtherProviderWanted:
      return "other-provider-wanted";
    case Reason::kPreferredPool:
      return "preferred-pool";
    case Reason::kOthersCanServe:
      return "others-can-serve";
    case Reason::kBreakerOpen:
      return "breaker-open";
    case Reason::kNoFreeNode:
      return "no-free-node";
    case Reason::kTenantLimit:
      return "tenant-limit";
    case Reason::kCapacityReserved:
      return "capacity-reserved";
    case Reason::kLaunchesInProgress:
      return "launches-in-progress";
    case Reason::kProviderFault:
      return "provider-fault";
    case Reason::kProviderUnusable:
      return "provider-unusable";
  }
  return "none";
}

std::string SentenceOf(std::string_view code, const PoolKey& pool, std::string_view text) {
  switch (kCodes[PlaceOf(code)].subject) {
    case Subject::kPool:
      return fmt::format("{} {} {}", pool.provider, pool.pool, text);
    case Subject::kProvider:
      return fmt::format("provider {} {}", pool.provider, text);
    case Subject::kRequest:
      break;
  }
  return std::string(text);
}

int RankOf(std::string_view code) { return static_cast<int>(PlaceOf(code)); }

bool IsLeftToOthers(std::string_view code) { return PlaceOf(code) >= kFirstLeftToOthers; }

const RequestReason* DecidingReason(const std::vector<RequestReason>& reasons) {
  auto first = std::ranges::min_element(reasons, {}, [](const RequestReason& r) { return RankOf(r.code); });
  return first == reasons.end() ? nullptr : &*first;
}

RequestReason SilentLauncher(const std::string& hostname, std::string_view why) {
  return {std::string(kSilentLauncherCode),
          {},
          fmt::format("launcher {} does not answer: {}", hostname, why),
          hostname};
}

}  // namespace nodepool::sched
