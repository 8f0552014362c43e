#include "sched/requests/assigner.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "model/node.h"

namespace nodepool::sched {

namespace {

LabelName FirstLabelOf(const Shape& shape) {
  return shape.node_types.empty() ? LabelName() : shape.node_types.front();
}

template <class Map, class Key>
void RemoveFrom(Map& lines, const Key& key, const Line& line) {
  auto known = lines.find(key);
  known->second.erase(line.number);
  if (known->second.empty()) lines.erase(known);
}

}  // namespace

Shape ShapeOf(const NodeRequest& request) {
  return {request.node_types,  request.reuse,    request.requestor == kMinReadyRequestor,
          request.tenant_name, request.provider, request.declined_by};
}

void Queues::Put(const RequestId& id, const NodeRequest& request) {
  auto order = OrderOf(id, request);
  if (!order || request.state != RequestState::kRequested) return Remove(id);
  Shapes::iterator line = Enter(ShapeOf(request));
  auto place = places_.find(id);
  bool has_other_shape = place != places_.end() && place->second.line != line;
  if (has_other_shape) Remove(id);
  bool is_new = place == places_.end() || has_other_shape;
  if (is_new || place->second.order != *order) {
    Insert(line->second, *order);
    // Behind the new place, so that what is known of the shape is kept.
    if (!is_new) Take(place->second);
    places_.insert_or_assign(id, Place{line, *order});
  }
  line->second.requests.at(*order) = {id, &request};
}

void Queues::Insert(Line& line, const ServiceOrder& order) {
  bool is_first = line.requests.empty() || order < line.requests.begin()->first;
  bool is_due = line.requests.empty() || due_.contains(line.requests.begin()->first);
  if (is_first && is_due) {
    if (!line.requests.empty()) due_.erase(line.requests.begin()->first);
    due_.emplace(order, &line);
  }
  line.requests.try_emplace(order);
}

void Queues::Remove(const RequestId& id) {
  auto place = places_.find(id);
  if (place == places_.end()) return;
  Take(place->second);
  places_.erase(place);
}

void Queues::Take(const Place& place) {
  Line& line = place.line->second;
  bool was_due_first = due_.erase(place.order) > 0;
  line.requests.erase(place.order);
  if (line.requests.empty()) return Leave(place.line);
  if (was_due_first) SetDue(line);
}

Queues::Shapes::iterator Queues::Enter(Shape shape) {
  auto [entered, is_new] = shapes_.try_emplace(std::move(shape));
  if (!is_new) return entered;
  Line& line = entered->second;
  line.number = ++last_number_;
  line.shape = &entered->first;
  by_first_label_[FirstLabelOf(*line.shape)].emplace(line.number, &line);
  if (line.shape->tenant_name) by_tenant_[*line.shape->tenant_name].emplace(line.number, &line);
  return entered;
}

void Queues::Leave(Shapes::iterator left) {
  Line& line = left->second;
  RemoveFrom(by_first_label_, FirstLabelOf(*line.shape), line);
  if (line.shape->tenant_name) RemoveFrom(by_tenant_, *line.shape->tenant_name, line);
  at_fault_.erase(line.number);
  if (line.is_waiting) NoteChange(line);
  shapes_.erase(left);
}

const Answers* Queues::WaitingOf(const Shape& shape) const {
  auto line = shapes_.find(shape);
  return line == shapes_.end() || !line->second.is_waiting ? nullptr : &line->second.answers;
}

void Queues::Wait(Line& line) {
  due_.erase(line.requests.begin()->first);
  if (!std::exchange(line.is_waiting, true)) NoteChange(line);
  if (line.faults > 0) {
    at_fault_.emplace(line.number, &line);
  } else {
    at_fault_.erase(line.number);
  }
}

const Queues::Lines& Queues::WithFirstLabel(const LabelName& label) const {
  return FindOrEmpty(by_first_label_, label);
}

const Queues::Lines& Queues::OfTenant(const std::string& tenant) const {
  return FindOrEmpty(by_tenant_, tenant);
}

std::set<LabelName> LabelsToReuse(const Queues& queues) {
  std::set<LabelName> labels;
  for (const auto& [shape, line] : queues.shapes()) {
    if (shape.reuse) labels.insert(shape.node_types.begin(), shape.node_types.end());
  }
  return labels;
}

namespace {

// What an answer depends on, each including the one before it.
enum class DependsOn { kRegistry, kOffer, kUse };

DependsOn DependsOnOf(Reason reason) {
  switch (reason) {
    case Reason::kNotRequested:
    case Reason::kDeclinedBefore:
    case Reason::kOtherProviderWanted:
    case Reason::kPreferredPool:
    case Reason::kOthersCanServe:
      return DependsOn::kRegistry;
    case Reason::kTenantLimit:
      return DependsOn::kOffer;
    default:
      return DependsOn::kUse;
  }
}

// What never changes of a pool of one configuration.
bool IsSamePool(const PoolView& a, const PoolView& b) {
  auto is_same_label = [](const auto& x, const auto& y) { return x.first == y.first; };
  return a.key == b.key && a.launcher == b.launcher && a.priority == b.priority &&
         std::ranges::equal(a.labels, b.labels, is_same_label);
}

// What it offers, however much of it is used.
bool IsSameOffer(const PoolView& a, const PoolView& b) {
  auto is_same_label = [](const auto& x, const auto& y) {
    return x.second.need == y.second.need && x.second.is_image_ready == y.second.is_image_ready &&
           x.second.is_broken == y.second.is_broken && x.second.is_unknown == y.second.is_unknown;
  };
  return a.is_disabled == b.is_disabled && a.paused_by == b.paused_by &&
         a.launches_nodes == b.launches_nodes && a.provider_fault == b.provider_fault &&
         a.ignores_provider_quota == b.ignores_provider_quota && a.waits_for_others == b.waits_for_others &&
         a.pool.limit == b.pool.limit && a.provider.limit == b.provider.limit &&
         a.provider.others == b.provider.others && std::ranges::equal(a.labels, b.labels, is_same_label);
}

bool HasFreeNodes(const PoolView& pool) {
  return std::ranges::any_of(pool.labels, [](const auto& label) {
    return label.second.free_nodes != nullptr && !label.second.free_nodes->empty();
  });
}

std::size_t EffortOf(const NodeRequest& request, std::size_t pools) {
  return 10 + pools * (1 + (request.node_types.size() + request.declined_by.size()) / 8);
}

}  // namespace

struct Assigner::Outcome {
  std::optional<std::size_t> taker;
  Standing standing = Standing::kClosed;  // of the taker
  Answers declines;
  Answers deferrals;  // where all pools were asked
};

void Assigner::RegistryChanged(const Registry& before) {
  auto is_same = [](const RegisteredPool& a, const RegisteredPool& b) {
    return a.id == b.id && a.provider == b.provider && a.name == b.name;
  };
  if (!std::ranges::equal(before.pools(), registry_.pools(), is_same))
    return queues_.ForEach([&](Line& line) { MakeStale(line); });
  for (std::size_t i = 0; i < before.pools().size(); ++i) {
    if (before.pools()[i] != registry_.pools()[i])
      RegisteredPoolChanged(before.pools()[i], registry_.pools()[i]);
  }
}

void Assigner::RegisteredPoolChanged(const RegisteredPool& before, const RegisteredPool& after) {
  // Requests that wait there may wait for what our pools of the provider would give away.
  for (std::size_t position : FindOrEmpty(of_provider_, before.provider)) PoolChanged(position, false);
  RegisteredPool paused = before;
  paused.is_paused = after.is_paused;
  bool is_never_preferred = before.priority >= last_priority_;
  if (paused == after && is_never_preferred) return;
  std::set<LabelName> labels = before.labels;
  labels.insert(after.labels.begin(), after.labels.end());
  labels.insert(LabelName());
  for (const LabelName& label : labels) {
    for (const auto& [number, line] : queues_.WithFirstLabel(label)) MakeStale(*line);
  }
}

void Assigner::SetPools(std::vector<PoolView> pools) {
  pools_ = std::move(pools);
  // The nodes of views that are not new are not there to be seen any more.
  had_free_nodes_.assign(pools_.size(), true);
  of_provider_.clear();
  last_priority_ = std::numeric_limits<std::int64_t>::min();
  for (std::size_t position = 0; position < pools_.size(); ++position) {
    of_provider_[pools_[position].key.provider].push_back(position);
    last_priority_ = std::max<std::int64_t>(last_priority_, pools_[position].priority);
  }
  queues_.ForEach([&](Line& line) { MakeStale(line); });
}

void Assigner::SetPool(std::size_t position, PoolView pool, bool has_other_nodes) {
  PoolView before = std::exchange(pools_[position], std::move(pool));
  const PoolView& now = pools_[position];
  if (!IsSamePool(before, now)) return SetPools(std::exchange(pools_, {}));
  if (has_other_nodes) {
    bool has_free_nodes = HasFreeNodes(now);
    bool had_free_nodes = had_free_nodes_[position];
    had_free_nodes_[position] = has_free_nodes;
    has_other_nodes = has_free_nodes || had_free_nodes;
  }
  if (before == now && !has_other_nodes) return;
  PoolChanged(position, !IsSameOffer(before, now));
}

void Assigner::PoolChanged(std::size_t position, bool is_offer_changed) {
  DependsOn least = is_offer_changed ? DependsOn::kOffer : DependsOn::kUse;
  auto visit = [&](Line& line) {
    if (line.is_stale) return;
    if (DependsOnOf(line.answers[position].second.reason) >= least) MakeStale(line, position);
  };
  // Requests for labels that it does not offer are left to others or declined, so they may be visited as
  // well.
  const std::map<LabelName, LabelView>& labels = pools_[position].labels;
  if (queues_.shapes().size() <= labels.size()) return queues_.ForEach(visit);
  auto visit_alike = [&](const LabelName& label) {
    for (const auto& [number, line] : queues_.WithFirstLabel(label)) visit(*line);
  };
  for (const auto& [label, view] : labels) visit_alike(label);
  visit_alike(LabelName());
}

void Assigner::SetTenants(std::map<std::string, TenantView> tenants) {
  if (tenants == tenants_) return;
  std::map<std::string, TenantView> before = std::exchange(tenants_, std::move(tenants));
  auto is_same = [](const auto& known, const std::pair<const std::string, TenantView>& tenant) {
    auto found = known.find(tenant.first);
    return found != known.end() && found->second == tenant.second;
  };
  for (const auto& tenant : tenants_) {
    if (!is_same(before, tenant)) TenantChanged(tenant.first);
  }
  for (const auto& tenant : before) {
    if (!tenants_.contains(tenant.first)) TenantChanged(tenant.first);
  }
}

void Assigner::TenantChanged(const std::string& tenant) {
  for (const auto& [number, line] : queues_.OfTenant(tenant)) {
    if (line->is_stale) continue;
    for (std::size_t position = 0; position < pools_.size(); ++position) {
      if (DependsOnOf(line->answers[position].second.reason) >= DependsOn::kOffer) MakeStale(*line, position);
    }
  }
}

void Assigner::MakeStale(Line& line) {
  line.is_stale = true;
  line.stale.clear();
  line.offers.reset();
  queues_.SetDue(line);
}

void Assigner::MakeStale(Line& line, std::size_t position) {
  if (line.stale.insert(position).second) queues_.SetDue(line);
}

Plan Assigner::Decide(const Portion& portion) {
  struct Place {
    Line* line = nullptr;
    Queue::const_iterator position = {};
  };
  // Of shapes whose first requests have been decided about.
  std::map<ServiceOrder, Place> further;
  const std::map<ServiceOrder, Line*>& due = queues_.due();
  auto next = portion.after ? due.upper_bound(*portion.after) : due.begin();
  auto next_place = [&] {
    if (!further.empty() && (next == due.end() || further.begin()->first < next->first))
      return further.extract(further.begin()).mapped();
    Line* line = (next++)->second;
    return Place{line, line->requests.begin()};
  };
  taken_.clear();
  Plan plan;
  std::size_t effort = 0;
  while (next != due.end() || !further.empty()) {
    Place place = next_place();
    const auto& [order, waiting] = *place.position;  // stays where it is, unlike `place`
    std::uint64_t asked = question_count_;
    bool continues_to_wait = DecideAbout(*place.line, waiting, plan);
    if (!continues_to_wait) {
      // What was taken concerns requests that may be the next ones now.
      next = due.upper_bound(order);
      if (++place.position != place.line->requests.end()) further.emplace(place.position->first, place);
    }
    effort += EffortOf(*waiting.request, question_count_ - asked);
    if (effort < portion.max_effort) continue;
    if (next != due.end() || !further.empty()) plan.continues_after = order;
    break;
  }
  return plan;
}

// Returns whether the request continues to wait, and with it all of its shape: they would get the same
// answers.
bool Assigner::DecideAbout(Line& line, const Waiting& waiting, Plan& plan) {
  const NodeRequest& request = *waiting.request;
  if (registry_.AllDeclined(request)) {
    plan.decline.push_back({waiting.id, {}});
    return false;
  }
  Outcome outcome = AskPools(line, request);
  if (outcome.taker) {
    plan.accept.push_back({waiting.id, pools_[*outcome.taker].key, outcome.standing});
    Book(*outcome.taker, request);
  } else if (!outcome.declines.empty()) {
    plan.decline.push_back({waiting.id, std::move(outcome.declines)});
  } else {
    Wait(line, std::move(outcome.deferrals));
    return true;
  }
  return false;
}

// The first pool that can serve the request at once takes it, otherwise the first that accepts it and lets it
// wait. The pools that need not be asked would defer it.
Assigner::Outcome Assigner::AskPools(Line& line, const NodeRequest& request) {
  if (!line.offers) line.offers.emplace(registry_, request);
  Question question{registry_, *line.offers, TenantOf(request), request, taken_};
  Outcome outcome;
  // Whether to ask further pools.
  auto ask = [&](std::size_t position) {
    ++question_count_;
    const PoolView& pool = pools_[position];
    Decision decision = Ask(pool, question);
    if (decision.kind == Decision::Kind::kAccept) {
      if (!outcome.taker || !decision.must_wait) {
        outcome.taker = position;
        outcome.standing = decision.standing;
      }
      return decision.must_wait;
    }
    if (decision.kind == Decision::Kind::kDecline) {
      outcome.declines.emplace_back(pool.key, std::move(decision));
    } else if (line.is_stale) {
      outcome.deferrals.emplace_back(pool.key, std::move(decision));
    } else {
      Record(line, position, std::move(decision));
    }
    return true;
  };
  if (line.is_stale) {
    for (std::size_t position = 0; position < pools_.size() && ask(position); ++position) {
    }
  } else {
    const std::set<std::size_t> stale = line.stale;
    std::ignore = std::ranges::all_of(stale, ask);
  }
  return outcome;
}

// A deferral in place of a former one.
void Assigner::Record(Line& line, std::size_t position, Decision decision) {
  Decision& former = line.answers[position].second;
  if (IsProviderFault(former.reason)) --line.faults;
  if (IsProviderFault(decision.reason)) ++line.faults;
  if (former.reason != decision.reason) queues_.NoteChange(line);
  former = std::move(decision);
  line.stale.erase(position);
}

// All pools defer it.
void Assigner::Wait(Line& line, Answers deferrals) {
  if (std::exchange(line.is_stale, false)) {
    line.answers = std::move(deferrals);
    auto is_fault = [](const auto& answer) { return IsProviderFault(answer.second.reason); };
    line.faults = static_cast<std::size_t>(std::ranges::count_if(line.answers, is_fault));
    queues_.NoteChange(line);
  }
  queues_.Wait(line);
}

const TenantView* Assigner::TenantOf(const NodeRequest& request) const {
  if (!request.tenant_name) return nullptr;
  auto tenant = tenants_.find(*request.tenant_name);
  return tenant == tenants_.end() ? nullptr : &tenant->second;
}

// What an accepted request takes from later ones.
void Assigner::Book(std::size_t taker, const NodeRequest& request) {
  PoolView& pool = pools_[taker];
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
  int launches = static_cast<int>(plan.launch.size() + plan.wait.size());
  if (launches > 0) {
    BookInProvider(pool.key.provider, launched, launches, waits ? plan.provider_shortage : Resources());
  } else {
    PoolChanged(taker, false);
  }
  BookProbe(pool.key.provider, StandingFor(pool, request));
  if (!request.tenant_name) return;
  auto tenant = tenants_.find(*request.tenant_name);
  if (tenant == tenants_.end()) return;
  Add(tenant->second.used, NeedOf(pool, request.node_types));
  TenantChanged(tenant->first);
}

void Assigner::BookInProvider(const ProviderName& provider, const Resources& launched, int launches,
                              const Resources& awaited) {
  for (std::size_t position : of_provider_.at(provider)) {
    PoolView& pool = pools_[position];
    Add(pool.provider.used, launched);
    pool.launches_in_progress += launches;
    for (const auto& [resource, amount] : awaited) pool.provider.reserved.insert(resource);
    PoolChanged(position, false);
  }
}

// One launch is the probe; which breakers it concerns is known after the decision.
void Assigner::BookProbe(const ProviderName& provider, Standing standing) {
  if (standing != Standing::kMayProbe) return;
  for (std::size_t position : of_provider_.at(provider)) {
    for (auto& [name, label] : pools_[position].labels) {
      if (label.standing == Standing::kMayProbe) label.standing = Standing::kOpen;
    }
    PoolChanged(position, false);
  }
}

}  // namespace nodepool::sched
