#include "launcher/requests/wait_reasons.h"

#include <fmt/format.h>

#include "base/text.h"
#include "launcher/requests/decline_text.h"
#include "sched/requests/deciding_reason.h"

namespace nodepool::launcher {
namespace {

using sched::Reason;
using sched::Shortfall;

// ", 3 are needed": where what is free would be enough for fewer.
std::string AlsoNeeded(const Shortfall& shortfall) {
  if (shortfall.used >= shortfall.limit) return "";
  return shortfall.is_reserved() ? ", the rest is kept for an earlier request"
                                 : fmt::format(", {} more are needed", shortfall.needed);
}

std::string TenantText(const std::string& tenant, const Shortfall& shortfall) {
  std::string setting = SettingOf(shortfall.resource);
  if (shortfall.needed > shortfall.limit) {
    return fmt::format("tenant {} has {} {}, and the request needs {}; raise it in tenant-resource-limits",
                       tenant, setting, shortfall.limit, shortfall.needed);
  }
  return fmt::format("tenant {} has {} of {} {}{}; raise it in tenant-resource-limits, or wait for its nodes",
                     tenant, shortfall.used, setting, shortfall.limit, AlsoNeeded(shortfall));
}

std::string LimitText(const Shortfall& shortfall) {
  if (shortfall.of == Shortfall::Limit::kPool) {
    std::string setting = SettingOf(shortfall.resource);
    return fmt::format("uses {} of {} {}{}; raise its {}, or wait for nodes", shortfall.used, shortfall.limit,
                       shortfall.resource, AlsoNeeded(shortfall), setting);
  }
  std::string others = shortfall.others > 0 ? fmt::format(", others use {}", shortfall.others) : "";
  return fmt::format("uses {} of {} {} of the cloud's quota{}{}; raise the quota, or wait for nodes",
                     shortfall.used, ExactSum(shortfall.limit, shortfall.others), shortfall.resource, others,
                     AlsoNeeded(shortfall));
}

std::string TextOfDecision(const PoolKey& pool, const sched::Decision& decision) {
  const std::string& detail = decision.detail;
  switch (decision.reason) {
    case Reason::kNone:
      return "";
    case Reason::kPoolDisabled:
      return "is disabled: its max-servers is 0";
    case Reason::kProviderPaused:
      return fmt::format("is paused by {}; `nodepool provider-unpause {}` ends it", detail, pool.provider);
    case Reason::kLabelNotAvailable:
      return fmt::format("cannot launch label {}; `nodepool label-list` says why", detail);
    case Reason::kImageNotAvailable:
      return fmt::format("has no image for label {}; `nodepool image-status` says why", detail);
    case Reason::kExceedsQuota:
      return fmt::format("can never have as many {} as the request needs", detail);
    case Reason::kNotRequested:
      return "works on it, or another pool does";
    case Reason::kDeclinedBefore:
      return "declined it before";
    case Reason::kOtherProviderWanted:
      return fmt::format("left to provider {}, which it asks for", detail);
    case Reason::kPreferredPool:
      return fmt::format("left to {}, which has a smaller priority number", detail);
    case Reason::kOthersCanServe:
      return fmt::format("left to {}, which has its labels", detail);
    case Reason::kBreakerOpen:
      if (detail.empty()) return "tries no launch now, though its launches fail";
      return fmt::format("leaves it to {}, since its launches fail; `nodepool status` says why", detail);
    case Reason::kNoFreeNode:
      return fmt::format("has no free node of label {}", detail);
    case Reason::kTenantLimit:
      return decision.shortfall ? TenantText(detail, *decision.shortfall)
                                : fmt::format("tenant {} is at its limit", detail);
    case Reason::kCapacityReserved:
      if (decision.shortfall) return LimitText(*decision.shortfall);
      return fmt::format("keeps its capacity for an earlier request{}{}",
                         detail.empty() ? "" : ", which waits for ", detail);
    case Reason::kLaunchesInProgress:
      return fmt::format("has {} launches of max-concurrency in progress; raise it to launch more at a time",
                         detail);
    case Reason::kProviderFault:
      return fmt::format("cannot say now whether it has label {}; it is asked again", detail);
    case Reason::kProviderUnusable:
      return fmt::format("cannot be used: {}", detail);
  }
  return "";
}

std::string RefusedText(const sched::FillPlan& plan) {
  std::vector<std::string> labels, resources;
  for (const LabelName& label : plan.refused.labels) labels.push_back(label.value);
  for (const auto& [resource, amount] : plan.provider_shortage) resources.push_back(resource);
  std::string what = !resources.empty() ? "more " + Join(resources, ", ")
                     : !labels.empty()  ? "label " + Join(labels, ", ")
                                        : "more nodes";
  return fmt::format("waits until the cloud has capacity: it refused {}; free some, or raise the quota",
                     what);
}

}  // namespace

WaitReason ReasonOf(const PoolKey& pool, const sched::Decision& decision) {
  return {pool, std::string(CodeOf(decision.reason)), TextOfDecision(pool, decision), {}, {}, {}};
}

WaitReason ReasonOf(const sched::PoolView& pool, const sched::FillPlan& plan) {
  WaitReason reason{
      pool.key, std::string(sched::kCapacityCode), "", plan.wait, plan.pool_shortage, plan.provider_shortage};
  std::optional<Shortfall> shortfall = plan.is_refused ? std::nullopt : ShortfallOf(pool, plan);
  if (shortfall) {
    reason.text = LimitText(*shortfall);
  } else if (plan.misses_capacity()) {
    reason.text = RefusedText(plan);
  } else {
    reason.code = CodeOf(Reason::kLaunchesInProgress);
    reason.text = TextOfDecision(
        pool.key, {.reason = Reason::kLaunchesInProgress,
                   .detail = fmt::format("{} of {}", pool.launches_in_progress, pool.max_concurrency)});
  }
  return reason;
}

WaitReason UnusableProvider(const PoolKey& pool, const std::string& fault) {
  return ReasonOf(pool,
                  {.reason = Reason::kProviderUnusable, .detail = fault.empty() ? "it is starting" : fault});
}

sched::RequestReason Sentence(const WaitReason& reason) {
  return {reason.code, reason.pool, sched::SentenceOf(reason.code, reason.pool, reason.text), ""};
}

}  // namespace nodepool::launcher
