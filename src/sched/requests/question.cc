#include "sched/requests/question.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "model/node_request.h"

namespace nodepool::sched {

Registry::Registry(std::vector<RegisteredPool> pools) : pools_(std::move(pools)) {
  for (std::size_t position = 0; position < pools_.size(); ++position) {
    if (pools_[position].is_paused) paused_.push_back(position);
    for (const LabelName& label : pools_[position].labels) by_label_[label].push_back(position);
  }
}

std::vector<const RegisteredPool*> Registry::Candidates(const NodeRequest& request) const {
  std::vector<const RegisteredPool*> candidates;
  auto add = [&](const RegisteredPool& pool) {
    bool has_all = std::all_of(request.node_types.begin(), request.node_types.end(),
                               [&](const LabelName& label) { return pool.labels.contains(label); });
    if (has_all && !request.WasDeclinedBy(pool.id)) candidates.push_back(&pool);
  };
  if (request.node_types.empty()) {
    for (const RegisteredPool& pool : pools_) add(pool);
  } else if (auto offering = by_label_.find(request.node_types.front()); offering != by_label_.end()) {
    for (std::size_t position : offering->second) add(pools_[position]);
  }
  return candidates;
}

bool Registry::Contains(const LauncherId& id) const {
  return std::ranges::find(pools_, id, &RegisteredPool::id) != pools_.end();
}

bool Registry::AllDeclined(const NodeRequest& request) const {
  return !pools_.empty() && std::all_of(pools_.begin(), pools_.end(), [&](const RegisteredPool& pool) {
    return request.WasDeclinedBy(pool.id);
  });
}

namespace {

using Served = std::set<std::pair<std::string, ProviderName>>;  // providers with pools, by hostname

// Whether the launcher may soon announce pools whose labels nobody knows yet.
bool IsStarting(const Component& launcher, const Served& served, const std::set<ProviderName>& known) {
  if (launcher.state == ComponentState::kInitializing || launcher.state == ComponentState::kStopped)
    return true;
  return std::ranges::any_of(launcher.providers, [&](const auto& entry) {
    const auto& [provider, report] = entry;
    bool may_come = report.state == ProviderState::kStarting || report.state == ProviderState::kFailing;
    return may_come && !known.contains(provider) && !served.contains({launcher.hostname, provider});
  });
}

std::string Fault(const LabelName& label, const std::set<LabelName>& offered) {
  std::vector<std::string> names;
  for (const LabelName& name : offered) names.push_back(name.value);
  std::optional<std::string> nearest = NearestSpelling(label.value, names);
  return fmt::format("no launcher offers label {}{}", Excerpt(label.value),
                     nearest ? fmt::format("; did you mean {}?", *nearest) : "");
}

}  // namespace

std::string FaultOfLabels(const std::vector<LabelName>& labels,
                          const std::vector<const Component*>& components,
                          const std::set<LabelName>& configured, const std::set<ProviderName>& known) {
  std::set<LabelName> offered = configured;
  Served served;
  for (const Component* component : components) {
    if (component->kind != ComponentKind::kPool) continue;
    offered.insert(component->supported_labels.begin(), component->supported_labels.end());
    served.emplace(component->hostname, component->provider_name);
  }
  auto unknown = std::ranges::find_if(labels, [&](const LabelName& l) { return !offered.contains(l); });
  if (served.empty() || unknown == labels.end()) return "";
  bool may_come = std::ranges::any_of(components, [&](const Component* component) {
    return component->kind == ComponentKind::kLauncher && IsStarting(*component, served, known);
  });
  return may_come ? "" : Fault(*unknown, offered);
}

void Decline(NodeRequest& request, const std::vector<Decliner>& decliners, const Registry& registry,
             WallTime now) {
  for (const Decliner& decliner : decliners) {
    if (!request.WasDeclinedBy(decliner.launcher)) request.declined_by.push_back(decliner.launcher);
    AddDeclineReason(request, decliner.reason);
  }
  request.SetState(registry.AllDeclined(request) ? RequestState::kFailed : RequestState::kRequested, now);
}

namespace {

std::string JoinNames(const std::vector<LabelName>& labels) {
  std::vector<std::string> names;
  for (const LabelName& label : labels) names.push_back(label.value);
  return Join(names, ",");
}

std::vector<LabelName> Distinct(const std::vector<LabelName>& labels) {
  std::vector<LabelName> distinct = labels;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  return distinct;
}

Decision Defer(Reason reason, std::string detail = "", std::optional<Shortfall> shortfall = std::nullopt) {
  return {Decision::Kind::kDefer, reason, std::move(detail), false, std::move(shortfall)};
}

Decision Decline(Reason reason, std::string detail = "") {
  return {Decision::Kind::kDecline, reason, std::move(detail)};
}

std::string NameOf(const RegisteredPool& pool) {
  return pool.name.empty() ? pool.provider.value : fmt::format("{} {}", pool.provider, pool.name);
}

bool IsBrokenFor(const RegisteredPool& pool, const NodeRequest& request) {
  return std::ranges::any_of(request.node_types,
                             [&](const LabelName& label) { return pool.broken_labels.contains(label); });
}

// Whether a breaker bars launches for the request: while it may be probed, only those that are not the probe.
bool IsBarred(Standing standing, const NodeRequest& request) {
  return standing == Standing::kOpen || (standing == Standing::kMayProbe && !IsProbe(request));
}

// Reasons to leave the request to other pools (launcher.md 8, c to h).
Decision LeaveToOthers(const PoolView& pool, const Question& question) {
  const auto& [registry, offers, tenant, request, taken_nodes] = question;
  if (request.state != RequestState::kRequested) return Defer(Reason::kNotRequested);
  if (request.WasDeclinedBy(pool.launcher)) return Defer(Reason::kDeclinedBefore);
  bool is_others_probe = IsProbe(request) && request.provider != pool.key.provider;
  if (is_others_probe || (offers.is_provider_binding && request.provider != pool.key.provider))
    return Defer(Reason::kOtherProviderWanted, request.provider.value);
  const RegisteredPool* preferred = offers.preferred ? &registry.pools()[*offers.preferred] : nullptr;
  if (preferred != nullptr && preferred->priority < pool.priority && !IsProbe(request))
    return Defer(Reason::kPreferredPool, NameOf(*preferred));
  bool has_all = std::all_of(request.node_types.begin(), request.node_types.end(),
                             [&](const LabelName& label) { return pool.labels.contains(label); });
  if (!has_all && offers.first)
    return Defer(Reason::kOthersCanServe, NameOf(registry.pools()[*offers.first]));
  return {Decision::Kind::kAccept};
}

// Whether another request already waits for capacity that this one would use or wait for, here or
// at the same pool or provider of another worker. Two requests that hold nodes while they wait for
// each other's would wait for ever. Min-ready nodes come after all waiting requests.
bool IsAwaitedAlready(const PoolView& pool, const Registry& registry, const FillPlan& plan,
                      bool is_min_ready) {
  bool is_taking = plan.misses_capacity() || is_min_ready;
  if (pool.is_waiting && is_taking) return true;
  return std::any_of(registry.paused().begin(), registry.paused().end(), [&](std::size_t position) {
    const RegisteredPool& other = registry.pools()[position];
    if (other.id == pool.launcher || other.provider != pool.key.provider) return false;
    // The record does not say what it waits for, so nothing of the same pool is used.
    if (other.name == pool.key.pool) return is_taking || !plan.launch.empty();
    bool is_unlimited = pool.ignores_provider_quota && pool.is_cloud_full;
    return is_min_ready || !plan.provider_shortage.empty() || (is_unlimited && !plan.launch.empty());
  });
}

std::optional<Shortfall> TenantShortfall(const TenantView& tenant, const Resources& need) {
  Resources missing = Shortage(tenant.limit, tenant.used, need);
  if (missing.empty()) return std::nullopt;
  const std::string& resource = missing.begin()->first;
  return Shortfall{Shortfall::Limit::kTenant, resource, FindOrEmpty(tenant.used, resource),
                   tenant.limit.at(resource), need.at(resource)};
}

// Reasons to wait although the pool could serve the request in principle.
Decision WaitReason(const PoolView& pool, const Question& question) {
  const auto& [registry, offers, tenant, request, taken_nodes] = question;
  if (tenant != nullptr) {
    if (std::optional<Shortfall> shortfall = TenantShortfall(*tenant, NeedOf(pool, request.node_types)))
      return Defer(Reason::kTenantLimit, request.tenant_name.value_or(""), std::move(shortfall));
  }
  FillPlan plan = PlanFill(pool, MissingLabels(request.node_types, {}), request.reuse, taken_nodes);
  if (!pool.launches_nodes) {
    return plan.wait.empty() ? Decision{Decision::Kind::kAccept}
                             : Defer(Reason::kNoFreeNode, JoinNames(Distinct(plan.wait)));
  }
  bool lacks_nodes = !plan.launch.empty() || !plan.wait.empty();
  if (pool.is_provider_away && lacks_nodes) return Defer(Reason::kProviderUnusable, pool.provider_fault);
  Standing standing = lacks_nodes ? StandingFor(pool, request) : Standing::kClosed;
  if (IsProbe(request) && standing != Standing::kMayProbe) return Defer(Reason::kBreakerOpen);
  const RegisteredPool* other = IsBarred(standing, request) ? offers.HealthyOther(registry, pool) : nullptr;
  if (other != nullptr) return Defer(Reason::kBreakerOpen, NameOf(*other));
  int launches = static_cast<int>(plan.launch.size() + plan.wait.size());
  bool is_idle = pool.launches_in_progress == 0;
  if (pool.max_concurrency > 0 && launches > 0 && !is_idle &&
      pool.launches_in_progress + launches > pool.max_concurrency) {
    return Defer(Reason::kLaunchesInProgress,
                 fmt::format("{} of {}", pool.launches_in_progress, pool.max_concurrency));
  }
  bool is_min_ready = request.requestor == kMinReadyRequestor;
  if (!plan.refused.empty() || IsAwaitedAlready(pool, registry, plan, is_min_ready)) {
    return Defer(Reason::kCapacityReserved, plan.Missing(), ShortfallOf(pool, plan));
  }
  return {Decision::Kind::kAccept, Reason::kNone, "", !plan.wait.empty(), {}, standing};
}

}  // namespace

Resources NeedOf(const PoolView& pool, const std::vector<LabelName>& labels) {
  Resources need;
  for (const LabelName& label : labels) {
    if (auto it = pool.labels.find(label); it != pool.labels.end()) Add(need, it->second.need);
  }
  return need;
}

Standing StandingFor(const PoolView& pool, const NodeRequest& request) {
  Standing worst = Standing::kClosed;
  for (const LabelName& label : request.node_types) {
    auto found = pool.labels.find(label);
    if (found != pool.labels.end()) worst = std::max(worst, found->second.standing);
  }
  return worst;
}

Offers::Offers(const Registry& registry, const NodeRequest& request) {
  std::vector<const RegisteredPool*> candidates = registry.Candidates(request);
  auto position_of = [&](const RegisteredPool* pool) {
    return static_cast<std::size_t>(pool - registry.pools().data());
  };
  if (!candidates.empty()) first = position_of(candidates.front());
  is_provider_binding = !request.provider.empty() && std::ranges::any_of(candidates, [&](const auto* pool) {
    return pool->provider == request.provider;
  });
  for (const RegisteredPool* pool : candidates) {
    // Pools that leave it to the requested provider are not waited for.
    if (pool->is_failing || (is_provider_binding && pool->provider != request.provider)) continue;
    if (IsBrokenFor(*pool, request)) continue;
    if (!pool->is_provider_paused) healthy.push_back(position_of(pool));
    if (pool->is_paused) continue;
    if (!preferred || pool->priority < registry.pools()[*preferred].priority) preferred = position_of(pool);
  }
}

const RegisteredPool* Offers::HealthyOther(const Registry& registry, const PoolView& pool) const {
  for (std::size_t position : healthy) {
    const RegisteredPool& other = registry.pools()[position];
    if (other.id != pool.launcher && (other.heeds_breakers || other.priority <= pool.priority)) return &other;
  }
  return nullptr;
}

Decision DeclineReason(const PoolView& pool, const NodeRequest& request) {
  if (pool.is_disabled) return Decline(Reason::kPoolDisabled);
  if (pool.paused_by) return Decline(Reason::kProviderPaused, *pool.paused_by);
  std::vector<LabelName> unavailable, without_image, unknown;
  for (const LabelName& label : Distinct(request.node_types)) {
    auto it = pool.labels.find(label);
    if (it == pool.labels.end() || it->second.is_broken) {
      unavailable.push_back(label);
    } else if (it->second.is_unknown) {
      unknown.push_back(label);
    } else if (!it->second.is_image_ready) {
      without_image.push_back(label);
    }
  }
  // What is certain decides, even if nothing is known now of another label.
  if (!unavailable.empty()) return Decline(Reason::kLabelNotAvailable, JoinNames(unavailable));
  if (!without_image.empty()) return Decline(Reason::kImageNotAvailable, JoinNames(without_image));
  if (!unknown.empty()) {
    return pool.provider_fault.empty() ? Defer(Reason::kProviderFault, JoinNames(unknown))
                                       : Defer(Reason::kProviderUnusable, pool.provider_fault);
  }
  if (!pool.launches_nodes) return {Decision::Kind::kAccept};
  Resources need = NeedOf(pool, request.node_types);
  Resources excess = Shortage(pool.pool.limit, {}, need);
  excess.merge(Shortage(DecliningLimit(pool), {}, need));
  if (!excess.empty()) return Decline(Reason::kExceedsQuota, excess.begin()->first);
  return {Decision::Kind::kAccept};
}

bool IsProbeWanted(const PoolView& pool, const Registry& registry, const NodeRequest& request) {
  return StandingFor(pool, request) == Standing::kMayProbe && IsLeftByBreaker(pool, registry, request) &&
         DeclineReason(pool, request).kind == Decision::Kind::kAccept;
}

bool IsLeftByBreaker(const PoolView& pool, const Registry& registry, const NodeRequest& request) {
  return pool.launches_nodes && IsBarred(StandingFor(pool, request), request) &&
         Offers(registry, request).HealthyOther(registry, pool) != nullptr;
}

Decision Ask(const PoolView& pool, const Question& question) {
  Decision decision = LeaveToOthers(pool, question);
  if (decision.kind == Decision::Kind::kAccept) decision = DeclineReason(pool, question.request);
  if (decision.kind == Decision::Kind::kAccept) decision = WaitReason(pool, question);
  return decision;
}

Decision Consider(const PoolView& pool, const Registry& registry, const TenantView* tenant,
                  const NodeRequest& request) {
  Offers offers(registry, request);
  std::set<NodeId> none;
  return Ask(pool, {registry, offers, request.tenant_name ? tenant : nullptr, request, none});
}

}  // namespace nodepool::sched
