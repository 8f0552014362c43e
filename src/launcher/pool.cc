#include "launcher/pool.h"

#include <algorithm>
#include <limits>

#include "async/task.h"
#include "base/text.h"
#include "base/version.h"
#include "launcher/requests/wait_reasons.h"
#include "model/image.h"
#include "model/node.h"

namespace nodepool::launcher {

void WaitingRequests::Put(const sched::ServiceOrder& order, WaitingRequest request) {
  Remove(order);
  if (request.takes_free_nodes) {
    for (const LabelName& label : request.plan.wait) takers_.emplace(label, order);
  }
  requests_.emplace(order, std::move(request));
}

void WaitingRequests::Remove(const sched::ServiceOrder& order) {
  auto known = requests_.find(order);
  if (known == requests_.end()) return;
  for (const LabelName& label : known->second.plan.wait) takers_.erase({label, order});
  requests_.erase(known);
}

const WaitingRequest* WaitingRequests::Find(const sched::ServiceOrder& order) const {
  auto known = requests_.find(order);
  return known == requests_.end() ? nullptr : &known->second;
}

void WaitingRequests::WakeAll() const {
  for (const auto& [order, request] : requests_) request.changed->Set();
}

bool WaitingRequests::AnyMissesCapacity() const {
  return std::ranges::any_of(requests_,
                             [](const auto& entry) { return entry.second.plan.misses_capacity(); });
}

bool WaitingRequests::AnyHoldsBack() const {
  return std::ranges::any_of(requests_, [](const auto& entry) {
    return entry.second.plan.misses_capacity() && !entry.second.plan.misses_only_labels();
  });
}

std::set<std::string> WaitingRequests::Missing(const sched::ServiceOrder* before) const {
  std::set<std::string> resources;
  for (const auto& [order, request] : requests_) {
    if (before != nullptr && !(order < *before)) break;
    for (const auto& [resource, amount] : request.plan.pool_shortage) resources.insert(resource);
  }
  return resources;
}

bool WaitingRequests::AnyTakes(const store::StoredNode& node) const {
  return std::ranges::any_of(node.record.type, [&](const LabelName& label) {
    const sched::ServiceOrder first{"", -std::numeric_limits<double>::infinity(), 0, ""};
    auto taker = takers_.lower_bound({label, first});
    for (; taker != takers_.end() && taker->first == label; ++taker) {
      if (!requests_.at(taker->second).rejected->Contains(node.id)) return true;
    }
    return false;
  });
}

namespace {

// A record is limited in size, and operators read a few.
constexpr std::size_t kMaxFaults = 100;
constexpr std::size_t kMaxFault = 500;

}  // namespace

Pool::Pool(Context& context, const ProviderManager& providers, const ClusterView& cluster,
           std::shared_ptr<const driver::ProviderConfig> provider_config,
           std::shared_ptr<const driver::PoolConfig> config, LauncherId launcher_id)
    : context_(context),
      providers_(providers),
      cluster_(cluster),
      provider_config_(std::move(provider_config)),
      config_(std::move(config)),
      key_{provider_config_->name, config_->name},
      launcher_id_(std::move(launcher_id)),
      logger_(fmt::format("nodepool.PoolWorker.{}-{}", key_.provider, key_.pool)),
      entry_(context.loop, context.store.tree.client(), Announcement()) {}

Component Pool::Announcement() const {
  Component component;
  component.kind = ComponentKind::kPool;
  component.hostname = context_.hostname;
  component.state = ComponentState::kRunning;
  component.version = Version();
  component.locks_slots = true;
  component.id = launcher_id_;
  component.name = key_.pool;
  component.provider_name = key_.provider;
  // Other launchers leave no requests to a pool that will never launch for them.
  if (context_.duties.launches) {
    for (const auto& [label, config] : config_->labels) component.supported_labels.push_back(label);
  }
  component.priority = config_->priority;
  component.is_paused = waiting_.AnyMissesCapacity();
  component.label_faults = announced_faults_;
  return component;
}

void Pool::Configure(std::shared_ptr<const driver::ProviderConfig> provider_config,
                     std::shared_ptr<const driver::PoolConfig> config) {
  provider_config_ = std::move(provider_config);
  config_ = std::move(config);
  faults_.clear();
  announced_faults_.clear();
  entry_.Update(Announcement());
}

void Pool::AnnounceFaults() {
  announced_faults_.clear();
  bool is_usable = launches_nodes() && providers_.HealthOf(key_.provider).is_up;
  for (const auto& [name, label] : config_->labels) {
    if (!is_usable || announced_faults_.size() == kMaxFaults) break;
    if (IsValidationLabel(name)) continue;  // what is wrong with it is wrong with the label that it copies
    sched::LabelView view = LabelViewOf(*label);
    bool can_never = view.is_broken || (!view.is_image_ready && !view.is_unknown);
    auto fault = faults_.find(name);
    if (can_never && fault != faults_.end())
      announced_faults_.emplace(name, Excerpt(fault->second, kMaxFault));
  }
  entry_.Update(Announcement());
}

void Pool::SetWaiting(const sched::ServiceOrder& order, WaitingRequest request) {
  waiting_.Put(order, std::move(request));
  WaitingChanged();
}

void Pool::EndWaiting(const sched::ServiceOrder& order) {
  waiting_.Remove(order);
  WaitingChanged();
}

void Pool::WaitingChanged() {
  entry_.Update(Announcement());
  context_.ledger.CapacityChanged(key_.provider);
}

bool Pool::launches_nodes() const {
  std::shared_ptr<driver::Provider> running = provider();
  return context_.duties.launches && running && running->launches_nodes();
}

sched::LabelView Pool::LabelViewOf(const driver::LabelConfig& label) const {
  sched::LabelView view;
  view.free_nodes = &context_.caches.nodes.FreeNodes(key_, label.name);
  view.standing = context_.breakers.StandingOf(key_, label.name);
  // A driver's error affects that label only (D-26).
  try {
    AskDriver(label, view);
    SetFault(label.name, WhyNotLaunchable(label, view));
  } catch (...) {
    Failure failure(std::current_exception());
    view.is_broken = failure.verdict() == Verdict::kInvalid;
    view.is_unknown = !view.is_broken;
    // An error that follows from the provider's fault was logged with it.
    std::string fault = view.is_broken ? "" : ProviderFault();
    bool is_own = fault.empty();
    bool is_new = SetFault(label.name, is_own ? failure.message() : fault);
    if (is_own && is_new) {
      logger_.Error("Label {} cannot be launched{}: {}", label.name, view.is_broken ? "" : " now",
                    failure.message());
    }
  }
  return view;
}

void Pool::AskDriver(const driver::LabelConfig& label, sched::LabelView& view) const {
  if (label.diskimage && !IsValidationLabel(label.name))
    view.is_image_ready =
        context_.caches.images.NewestReadyUpload(*label.diskimage, key_.provider) != nullptr;
  // What a cloud has is not known before it could be used.
  if (!providers_.HealthOf(key_.provider).was_up) {
    view.is_unknown = view.is_image_ready;
    return;
  }
  std::shared_ptr<driver::Provider> running = provider();
  if (!label.diskimage) {
    driver::Readiness readiness = running->LabelReady(label);
    view.is_image_ready = readiness == driver::Readiness::kReady;
    view.is_unknown = readiness == driver::Readiness::kUnknown;
  }
  view.need = running->QuotaForLabel(label).resources();
}

// Empty: nothing is against it.
std::string Pool::WhyNotLaunchable(const driver::LabelConfig& label, const sched::LabelView& view) const {
  if (view.is_unknown) {
    std::string fault = ProviderFault();
    return fault.empty() ? "the driver cannot say now whether its image exists" : fault;
  }
  if (view.is_image_ready) return "";
  return label.diskimage ? fmt::format("image {} has no upload in {}", *label.diskimage, key_.provider)
                         : fmt::format("cloud image {} is not available in {}",
                                       label.cloud_image.value_or(""), key_.provider);
}

// Whether it is another one than before.
bool Pool::SetFault(const LabelName& label, std::string fault) const {
  if (fault.empty()) return faults_.erase(label) > 0;
  return std::exchange(faults_[label], fault) != fault;
}

std::string Pool::ProviderFault() const {
  return provider() == nullptr ? "" : providers_.HealthOf(key_.provider).fault;
}

bool Pool::is_away() const { return provider() != nullptr && providers_.HealthOf(key_.provider).is_away; }

Resources Pool::NeedOf(const std::vector<LabelName>& labels) const {
  Resources need;
  for (const LabelName& label : labels) Add(need, LabelViewOf(*config_->labels.at(label)).need);
  return need;
}

const ProviderPause* Pool::provider_pause() const { return context_.caches.pauses.Find(key_.provider); }

bool Pool::IsLabelAvailable(const LabelName& label) const {
  auto config = config_->labels.find(label);
  if (config == config_->labels.end() || !launches_nodes() || provider_pause() != nullptr) return false;
  sched::LabelView view = LabelViewOf(*config->second);
  return view.is_image_ready && !view.is_broken && !view.is_unknown && !is_away();
}

// By the records; for a node whose record names no resources, by the configuration.
void Pool::AddUnknown(Resources& used, const PoolName& pool, const std::map<LabelName, int>& counts) const {
  auto config = provider_config_->pools.find(pool);
  if (config == provider_config_->pools.end()) return;
  for (const auto& [label, count] : counts) {
    auto offered = config->second->labels.find(label);
    if (offered == config->second->labels.end()) continue;
    Resources need = LabelViewOf(*offered->second).need;
    Add(used, need, count);
  }
}

// With launches that were decided.
Resources Pool::UsedByPool() const {
  Resources used = context_.caches.nodes.UsedBy(key_);
  AddUnknown(used, key_.pool, context_.caches.nodes.WithoutResources(key_));
  Add(used, context_.ledger.PendingIn(key_));
  return used;
}

Resources Pool::UsedByProvider() const {
  Resources used = context_.caches.nodes.UsedBy(key_.provider);
  for (const auto& [pool, counts] : context_.caches.nodes.WithoutResources(key_.provider))
    AddUnknown(used, pool, counts);
  Add(used, context_.ledger.PendingIn(key_.provider));
  return used;
}

Resources Pool::Used() const {
  if (provider() == nullptr) return context_.caches.nodes.UsedBy(key_);
  return UsedByPool();
}

sched::PoolView Pool::PlainView() const {
  sched::PoolView view;
  view.key = key_;
  view.launcher = launcher_id_;
  view.priority = config_->priority;
  view.is_disabled = config_->max_servers <= 0;
  if (const ProviderPause* pause = provider_pause()) view.paused_by = WhoAndWhy(*pause);
  view.ignores_provider_quota = config_->ignore_provider_quota;
  view.is_cloud_full = context_.loop.SteadyNow() < context_.ledger.CloudFullUntil(key_.provider);
  view.max_concurrency = provider_config_->max_concurrency;
  view.launches_nodes = launches_nodes();
  view.provider_fault = ProviderFault();
  view.is_provider_away = is_away();
  for (const auto& [name, label] : config_->labels) view.labels.emplace(name, LabelViewOf(*label));
  if (!view.launches_nodes) return view;
  view.launches_in_progress = context_.ledger.LaunchesInProgress(key_.provider);
  view.pool.limit = config_->Limit().resources();
  view.pool.used = UsedByPool();
  view.provider.used = UsedByProvider();
  // Where a driver fails to name its limits, requests wait and are not declined (D-26).
  try {
    view.provider.limit = provider()->AvailableQuota().resources();
    view.provider.others = provider()->UsedByOthers().resources();
    view.waits_for_others = provider()->waits_for_others();
  } catch (...) {
    for (auto& [name, label] : view.labels) label.is_unknown = true;
  }
  return view;
}

void Pool::Reserve(sched::PoolView& view, const sched::ServiceOrder* before) const {
  Ledger::Awaited awaited = context_.ledger.AwaitedIn(key_.provider, before);
  view.launches_in_progress += awaited.turns;
  view.provider.reserved = std::move(awaited.resources);
  view.refused_labels = std::move(awaited.labels);
  view.pool.reserved = waiting_.Missing(before);
}

sched::PoolView Pool::View() const {
  sched::PoolView view = PlainView();
  Reserve(view, nullptr);
  view.is_waiting = waiting_.AnyHoldsBack();
  return view;
}

sched::PoolView Pool::ViewFor(const sched::ServiceOrder& order) const {
  sched::PoolView view = PlainView();
  Reserve(view, &order);
  return view;
}

sched::Budget Pool::ProviderBudget() const {
  return provider() == nullptr ? sched::Budget() : PlainView().provider;
}

sched::Decision Pool::StillAcceptable(const NodeRequest& request) const {
  if (provider() == nullptr) return {};
  sched::PoolView view = PlainView();
  // What others use may become free, so it does not end what was accepted (launcher.md 19.3).
  view.waits_for_others = true;
  return sched::DeclineReason(view, request);
}

bool Pool::IsLeftByBreaker(const NodeRequest& request) const {
  if (provider() == nullptr || !context_.breakers.AreAnyOpen(key_.provider)) return false;
  sched::PoolView view = PlainView();
  sched::FillPlan plan = sched::PlanFill(view, sched::MissingLabels(request.node_types, {}), request.reuse);
  bool needs_launch = !plan.launch.empty() || !plan.wait.empty();
  return needs_launch && sched::IsLeftByBreaker(view, cluster_.registry, request);
}

bool Pool::IsProbeWanted(const NodeRequest& request) const {
  bool may_be_probed = std::ranges::any_of(request.node_types, [&](const LabelName& label) {
    return context_.breakers.StandingOf(key_, label) == sched::Standing::kMayProbe;
  });
  return may_be_probed && provider() != nullptr &&
         sched::IsProbeWanted(PlainView(), cluster_.registry, request);
}

// Which uploads there are is known from records, at once.
bool Pool::MayHavePassed(const NodeRequest& request, const sched::Decision& decision) const {
  bool is_lack = decision.kind == sched::Decision::Kind::kDecline &&
                 (decision.reason == sched::Reason::kImageNotAvailable ||
                  decision.reason == sched::Reason::kLabelNotAvailable);
  if (!is_lack || provider() == nullptr) return false;
  return std::ranges::all_of(request.node_types, [&](const LabelName& name) {
    auto label = config_->labels.find(name);
    if (label == config_->labels.end()) return false;
    const auto& image = label->second->diskimage;
    return !image || context_.caches.images.NewestReadyUpload(*image, key_.provider) != nullptr;
  });
}

std::string Pool::WhyDeclined(const NodeRequest& request, const sched::Decision& decision) const {
  if (provider() == nullptr) return std::string(ToString(decision.reason));
  sched::PoolView view = PlainView();
  return DeclineText({view, *config_, faults_}, request, decision);
}

sched::Decliner Pool::DeclineFor(const std::string& why) const {
  return {launcher_id_, fmt::format("{} {}: {}", key_.provider, key_.pool, why)};
}

}  // namespace nodepool::launcher
