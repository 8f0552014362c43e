#include "sched/requests/assign.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/find_or_empty.h"
#include "base/text.h"
#include "model/resources.h"

namespace nodepool::sched {
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

Resources NeedOf(const PoolView& pool, const std::vector<LabelName>& labels) {
  Resources need;
  for (const LabelName& label : labels) {
    if (auto it = pool.labels.find(label); it != pool.labels.end()) Add(need, it->second.need);
  }
  return need;
}

bool IsBrokenFor(const RegisteredPool& pool, const NodeRequest& request) {
  return std::ranges::any_of(request.node_types,
                             [&](const LabelName& label) { return pool.broken_labels.contains(label); });
}

// The worst of the labels'.
Standing StandingFor(const PoolView& pool, const NodeRequest& request) {
  Standing worst = Standing::kClosed;
  for (const LabelName& label : request.node_types) {
    auto found = pool.labels.find(label);
    if (found != pool.labels.end()) worst = std::max(worst, found->second.standing);
  }
  return worst;
}

// Which registered pools can serve a request: found once, however many pools are asked about it.
struct Offers {
  Offers(const Registry& registry, const NodeRequest& request) : candidates(registry.Candidates(request)) {
    is_provider_binding = !request.provider.empty() &&
                          std::any_of(candidates.begin(), candidates.end(),
                                      [&](const auto* pool) { return pool->provider == request.provider; });
    for (const RegisteredPool* pool : candidates) {
      // Pools that leave it to the requested provider are not waited for.
      if (pool->is_failing || (is_provider_binding && pool->provider != request.provider)) continue;
      if (IsBrokenFor(*pool, request)) continue;
      if (!pool->is_provider_paused) healthy.push_back(pool);
      if (pool->is_paused) continue;
      if (!preferred || pool->priority < preferred->priority) preferred = pool;
    }
  }

  // Another pool that can serve it and whose launches work, or null. The Python implementation's leave it to
  // pools with a smaller number, whatever their breakers are.
  const RegisteredPool* HealthyOther(const PoolView& pool) const {
    auto found = std::ranges::find_if(healthy, [&](const RegisteredPool* other) {
      return other->id != pool.launcher && (other->heeds_breakers || other->priority <= pool.priority);
    });
    return found == healthy.end() ? nullptr : *found;
  }

  std::vector<const RegisteredPool*> candidates;
  std::vector<const RegisteredPool*> healthy;  // those that can be used and whose launches work
  bool is_provider_binding = false;            // only the requested provider is to serve it
  // The first of the least priority number among those that are neither paused nor failing, and whose
  // launches work.
  const RegisteredPool* preferred = nullptr;
};

// Whether a breaker bars launches for the request: while it may be probed, only those that are not the probe.
bool IsBarred(Standing standing, const NodeRequest& request) {
  return standing == Standing::kOpen || (standing == Standing::kMayProbe && !IsProbe(request));
}

// Reasons to leave the request to other pools (launcher.md 8, c to h).
Decision LeaveToOthers(const PoolView& pool, const Offers& offers, const NodeRequest& request) {
  if (request.state != RequestState::kRequested) return Defer(Reason::kNotRequested);
  if (request.WasDeclinedBy(pool.launcher)) return Defer(Reason::kDeclinedBefore);
  bool is_others_probe = IsProbe(request) && request.provider != pool.key.provider;
  if (is_others_probe || (offers.is_provider_binding && request.provider != pool.key.provider))
    return Defer(Reason::kOtherProviderWanted, request.provider.value);
  bool is_left_to_preferred = offers.preferred && offers.preferred->priority < pool.priority;
  if (is_left_to_preferred && !IsProbe(request))
    return Defer(Reason::kPreferredPool, NameOf(*offers.preferred));
  bool has_all = std::all_of(request.node_types.begin(), request.node_types.end(),
                             [&](const LabelName& label) { return pool.labels.contains(label); });
  if (!has_all && !offers.candidates.empty())
    return Defer(Reason::kOthersCanServe, NameOf(*offers.candidates.front()));
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
Decision WaitReason(const PoolView& pool, const Registry& registry, const Offers& offers,
                    const TenantView* tenant, const NodeRequest& request,
                    const std::set<NodeId>& taken_nodes) {
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
  const RegisteredPool* other = IsBarred(standing, request) ? offers.HealthyOther(pool) : nullptr;
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

// The running state of Assign: what accepted requests take from later ones.
class Accounts {
 public:
  explicit Accounts(Snapshot snapshot) : snapshot_(std::move(snapshot)) {}

  const std::vector<PoolView>& pools() const { return snapshot_.pools; }
  Offers OffersFor(const NodeRequest& request) const { return {*snapshot_.registry, request}; }

  Decision Ask(const PoolView& pool, const Offers& offers, const NodeRequest& request) const {
    Decision decision = LeaveToOthers(pool, offers, request);
    if (decision.kind == Decision::Kind::kAccept) decision = DeclineReason(pool, request);
    if (decision.kind == Decision::Kind::kAccept)
      decision = WaitReason(pool, *snapshot_.registry, offers, TenantOf(request), request, taken_);
    return decision;
  }

  void Book(const PoolKey& taker, const NodeRequest& request) {
    PoolView& pool = *std::find_if(snapshot_.pools.begin(), snapshot_.pools.end(),
                                   [&](const PoolView& view) { return view.key == taker; });
    FillPlan plan = PlanFill(pool, MissingLabels(request.node_types, {}), request.reuse, taken_);
    for (const FillPlan::Reuse& reuse : plan.reuse) {
      taken_.insert(reuse.node);
      pool.labels.at(reuse.label).taken_up_to = reuse.node;
    }
    Resources launched = NeedOf(pool, plan.launch);
    Add(pool.pool.used, launched);
    bool waits = plan.misses_capacity() && request.requestor != kMinReadyRequestor;
    if (waits) {
      pool.is_waiting = true;
      for (const auto& [resource, amount] : plan.pool_shortage) pool.pool.reserved.insert(resource);
    }
    for (PoolView& sibling : snapshot_.pools) {
      if (sibling.key.provider != taker.provider) continue;
      Add(sibling.provider.used, launched);
      sibling.launches_in_progress += static_cast<int>(plan.launch.size() + plan.wait.size());
      if (!waits) continue;
      for (const auto& [resource, amount] : plan.provider_shortage)
        sibling.provider.reserved.insert(resource);
    }
    BookProbe(taker, StandingFor(pool, request));
    if (!request.tenant_name) return;
    auto tenant = snapshot_.tenants.find(*request.tenant_name);
    if (tenant != snapshot_.tenants.end()) Add(tenant->second.used, NeedOf(pool, request.node_types));
  }

 private:
  // One launch is the probe; which breakers it concerns is known after the decision.
  void BookProbe(const PoolKey& taker, Standing standing) {
    if (standing != Standing::kMayProbe) return;
    for (PoolView& pool : snapshot_.pools) {
      if (pool.key.provider != taker.provider) continue;
      for (auto& [name, label] : pool.labels) {
        if (label.standing == Standing::kMayProbe) label.standing = Standing::kOpen;
      }
    }
  }

  const TenantView* TenantOf(const NodeRequest& request) const {
    if (!request.tenant_name) return nullptr;
    auto it = snapshot_.tenants.find(*request.tenant_name);
    return it == snapshot_.tenants.end() ? nullptr : &it->second;
  }

  Snapshot snapshot_;
  std::set<NodeId> taken_;
};

struct Outcome {
  const PoolView* taker = nullptr;
  Standing standing = Standing::kClosed;  // of the taker
  Answers declines;
  Answers deferrals;
};

// The first pool that can serve the request at once takes it, otherwise the first that accepts it
// and lets it wait.
Outcome AskPools(const Accounts& accounts, const NodeRequest& request) {
  Outcome outcome;
  Offers offers = accounts.OffersFor(request);
  for (const PoolView& pool : accounts.pools()) {
    Decision decision = accounts.Ask(pool, offers, request);
    if (decision.kind == Decision::Kind::kAccept) {
      if (outcome.taker == nullptr || !decision.must_wait) {
        outcome.taker = &pool;
        outcome.standing = decision.standing;
      }
      if (!decision.must_wait) return outcome;
      continue;
    }
    auto& list = decision.kind == Decision::Kind::kDecline ? outcome.declines : outcome.deferrals;
    list.emplace_back(pool.key, std::move(decision));
  }
  return outcome;
}

std::size_t EffortOf(const NodeRequest& request, std::size_t pools) {
  return 10 + pools * (1 + (request.node_types.size() + request.declined_by.size()) / 8);
}

}  // namespace

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
         Offers(registry, request).HealthyOther(pool) != nullptr;
}

Decision Consider(const PoolView& pool, const Registry& registry, const TenantView* tenant,
                  const NodeRequest& request) {
  Snapshot snapshot{.registry = &registry};
  if (tenant != nullptr && request.tenant_name) snapshot.tenants.emplace(*request.tenant_name, *tenant);
  Accounts accounts(std::move(snapshot));
  return accounts.Ask(pool, accounts.OffersFor(request), request);
}

Plan Assign(Snapshot snapshot, const Portion& portion) {
  const Registry& registry = *snapshot.registry;
  const auto& heads = snapshot.queues->heads();
  auto next_head = portion.after ? heads.upper_bound(*portion.after) : heads.begin();
  struct Place {
    const Shape* shape;
    Queue::const_iterator position;
    Queue::const_iterator end;
  };
  // Of shapes whose first requests have been decided about.
  std::map<ServiceOrder, Place> further;
  auto next_place = [&] {
    if (!further.empty() && (next_head == heads.end() || further.begin()->first < next_head->first))
      return further.extract(further.begin()).mapped();
    const auto& [shape, queue] = *next_head->second;
    ++next_head;
    return Place{&shape, queue.begin(), queue.end()};
  };
  Accounts accounts(std::move(snapshot));
  Plan plan;
  std::size_t effort = 0;
  while (next_head != heads.end() || !further.empty()) {
    Place place = next_place();
    const auto& [order, waiting] = *place.position;
    bool continues_to_wait = false;
    if (registry.AllDeclined(*waiting.request)) {
      plan.decline.push_back({waiting.id, {}});
    } else {
      Outcome outcome = AskPools(accounts, *waiting.request);
      if (outcome.taker != nullptr) {
        plan.accept.push_back({waiting.id, outcome.taker->key, outcome.standing});
        accounts.Book(outcome.taker->key, *waiting.request);
      } else if (!outcome.declines.empty()) {
        plan.decline.push_back({waiting.id, std::move(outcome.declines)});
      } else {
        // The rest of the queue would get the same answer.
        plan.waiting.emplace(*place.shape, std::move(outcome.deferrals));
        continues_to_wait = true;
      }
    }
    if (!continues_to_wait && ++place.position != place.end) further.emplace(place.position->first, place);
    effort += EffortOf(*waiting.request, accounts.pools().size());
    if (effort >= portion.max_effort) {
      if (next_head != heads.end() || !further.empty()) plan.continues_after = order;
      break;
    }
  }
  return plan;
}

}  // namespace nodepool::sched
