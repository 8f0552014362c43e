#include "launcher/requests/wait_reasons.h"

#include <fmt/format.h>

#include "base/text.h"

namespace nodepool::launcher {
namespace {

std::string_view CodeOf(sched::Reason reason) {
  using sched::Reason;
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

void Describe(std::vector<std::string>& parts, const Resources& shortage, std::string_view where) {
  for (const auto& [resource, amount] : shortage)
    parts.push_back(fmt::format("{} {} in the {}", amount, resource, where));
}

}  // namespace

WaitReason ReasonOf(const PoolKey& pool, const sched::Decision& decision) {
  WaitReason reason{
      pool, std::string(CodeOf(decision.reason)), std::string(ToString(decision.reason)), {}, {}, {}};
  if (!decision.detail.empty()) reason.text += ": " + decision.detail;
  return reason;
}

WaitReason ReasonOf(const PoolKey& pool, const sched::FillPlan& plan) {
  WaitReason reason{pool,      "capacity",         "not enough capacity",
                    plan.wait, plan.pool_shortage, plan.provider_shortage};
  std::vector<std::string> missing;
  Describe(missing, plan.pool_shortage, "pool");
  Describe(missing, plan.provider_shortage, "provider");
  if (!missing.empty()) reason.text += ", missing " + Join(missing, ", ");
  std::vector<std::string> refused;
  for (const LabelName& label : plan.refused.labels) refused.push_back(label.value);
  if (!refused.empty()) reason.text += ", refused by the cloud: " + Join(refused, ", ");
  return reason;
}

}  // namespace nodepool::launcher
