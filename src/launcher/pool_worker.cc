#include "launcher/pool_worker.h"

#include <algorithm>

#include "model/resources.h"

namespace nodepool::launcher {

PoolWorker::PoolWorker(PoolSurroundings& surroundings,
                       std::shared_ptr<const driver::ProviderConfig> provider_config,
                       std::shared_ptr<const driver::PoolConfig> config, std::string hostname,
                       std::string fqdn)
    : surroundings_(surroundings),
      context_(surroundings.context),
      provider_config_(std::move(provider_config)),
      config_(std::move(config)),
      key_{provider_config_->name, config_->name},
      launcher_id_(
          fmt::format("{}-PoolWorker.{}-{}-{}", fqdn, key_.provider, key_.pool, context_.random.UuidHex())),
      hostname_(std::move(hostname)),
      logger_(fmt::format("nodepool.PoolWorker.{}-{}", key_.provider, key_.pool)),
      entry_(context_.loop, context_.store.tree.client(), Announcement()),
      tasks_(context_.loop, logger_) {}

PoolWorker::~PoolWorker() = default;

Component PoolWorker::Announcement() const {
  Component component;
  component.kind = ComponentKind::kPool;
  component.hostname = hostname_;
  component.state = ComponentState::kRunning;
  component.version = NODEPOOL_VERSION;
  component.locks_slots = true;
  component.id = launcher_id_;
  component.name = key_.pool;
  component.provider_name = key_.provider;
  // Nobody leaves requests to a pool that will never launch for them.
  if (context_.duties.launches) {
    for (const auto& [label, config] : config_->labels) component.supported_labels.push_back(label);
  }
  component.priority = config_->priority;
  component.is_paused = std::any_of(waiting_.begin(), waiting_.end(), [](const auto& waiting) {
    return waiting.second->plan().misses_capacity();
  });
  return component;
}

Task<> PoolWorker::Start() {
  logger_.Info("Starting PoolWorker.{}-{}", key_.provider, key_.pool);
  co_await entry_.Register();
  is_started_ = true;
}

void PoolWorker::Reconfigure(std::shared_ptr<const driver::ProviderConfig> provider_config,
                             std::shared_ptr<const driver::PoolConfig> config) {
  provider_config_ = std::move(provider_config);
  config_ = std::move(config);
  faults_.clear();
  entry_.Update(Announcement());
  ProviderChanged();
}

Task<> PoolWorker::Drain() {
  logger_.Info("The pool is not configured any more: finishing what runs, giving the rest back");
  for (const auto& [id, handler] : handlers_) handler->Drain();
  co_await entry_.Unregister();
  co_await tasks_.Join();
}

Task<> PoolWorker::Stop() {
  co_await tasks_.Stop();
  co_await entry_.Unregister();
}

void PoolWorker::SessionLost() { tasks_.CancelAll(); }

bool PoolWorker::is_registered() const {
  return !entry_.path().empty() && context_.registry.Contains(entry_.path());
}

std::shared_ptr<driver::Provider> PoolWorker::provider() const {
  return surroundings_.providers.Find(key_.provider);
}

bool PoolWorker::launches_nodes() const {
  std::shared_ptr<driver::Provider> running = provider();
  return context_.duties.launches && running && running->launches_nodes();
}

void PoolWorker::Accept(store::StoredRequest request, sched::ServiceOrder order) {
  RequestId id = request.id;
  auto handler =
      std::make_shared<Handler>(context_, surroundings_.ledger, *this, std::move(request), std::move(order));
  handlers_[id] = handler;
  tasks_.Spawn("handle request", {"", id.value, ""}, RunHandler(handler));
}

Task<> PoolWorker::RunHandler(std::shared_ptr<Handler> handler) {
  co_await handler->Run();
  // After a lost session the request may have been accepted anew already.
  auto it = handlers_.find(handler->id());
  if (it != handlers_.end() && it->second == handler) handlers_.erase(it);
  surroundings_.handler_ended(handler->id());
}

void PoolWorker::CapacityChanged() {
  for (const auto& [order, handler] : waiting_) handler->Wake();
}

void PoolWorker::RequestGone(const RequestId& id) {
  if (auto it = handlers_.find(id); it != handlers_.end()) it->second->RequestGone();
}

void PoolWorker::ProviderChanged() {
  for (const auto& [id, handler] : handlers_) handler->Wake();
}

const Handler* PoolWorker::FindHandler(const RequestId& id) const {
  auto it = handlers_.find(id);
  return it == handlers_.end() ? nullptr : it->second.get();
}

sched::LabelView PoolWorker::LabelViewOf(const driver::LabelConfig& label) const {
  sched::LabelView view;
  view.free_nodes = &context_.nodes.FreeNodes(key_, label.name);
  // A driver's fault is that label's only (D-26).
  try {
    AskDriver(label, view);
    faults_.erase(label.name);
  } catch (...) {
    std::exception_ptr error = std::current_exception();
    view.is_broken = VerdictOf(error) == Verdict::kInvalid;
    view.is_unknown = !view.is_broken;
    std::string& known = faults_[label.name];
    if (std::string message = MessageOf(error); known != message) {
      logger_.Error("Label {} cannot be launched{}: {}", label.name, view.is_broken ? "" : " now", message);
      known = std::move(message);
    }
  }
  return view;
}

void PoolWorker::AskDriver(const driver::LabelConfig& label, sched::LabelView& view) const {
  std::shared_ptr<driver::Provider> running = provider();
  if (label.diskimage) {
    view.is_image_ready = context_.images.NewestReadyUpload(*label.diskimage, key_.provider) != nullptr;
  } else {
    driver::Readiness readiness = running->LabelReady(label);
    view.is_image_ready = readiness == driver::Readiness::kReady;
    view.is_unknown = readiness == driver::Readiness::kUnknown;
  }
  view.need = running->QuotaForLabel(label).resources();
}

Resources PoolWorker::NeedOf(const std::vector<LabelName>& labels) const {
  Resources need;
  for (const LabelName& label : labels) Add(need, LabelViewOf(*config_->labels.at(label)).need);
  return need;
}

bool PoolWorker::IsLabelAvailable(const LabelName& label) const {
  auto config = config_->labels.find(label);
  if (config == config_->labels.end() || !launches_nodes()) return false;
  sched::LabelView view = LabelViewOf(*config->second);
  return view.is_image_ready && !view.is_broken && !view.is_unknown;
}

Resources PoolWorker::UsedBy(const PoolKey& pool) const {
  Resources used = context_.nodes.UsedBy(pool);
  auto config = provider_config_->pools.find(pool.pool);
  for (const auto& [label, count] : context_.nodes.WithoutResources(pool)) {
    if (config == provider_config_->pools.end()) continue;
    auto offered = config->second->labels.find(label);
    if (offered == config->second->labels.end()) continue;
    Resources need = LabelViewOf(*offered->second).need;
    Add(used, need, count);
  }
  return used;
}

Resources PoolWorker::UsedByProvider() const {
  Resources used = surroundings_.ledger.PendingIn(key_.provider);
  for (const PoolKey& pool : context_.nodes.PoolsWithNodes(key_.provider)) Add(used, UsedBy(pool));
  return used;
}

sched::PoolView PoolWorker::PlainView() const {
  sched::PoolView view;
  view.key = key_;
  view.launcher = launcher_id_;
  view.priority = config_->priority;
  view.is_disabled = config_->max_servers <= 0;
  view.ignores_provider_quota = config_->ignore_provider_quota;
  view.is_cloud_full = IsCloudFull();
  view.max_concurrency = provider_config_->max_concurrency;
  view.launches_nodes = launches_nodes();
  for (const auto& [name, label] : config_->labels) view.labels.emplace(name, LabelViewOf(*label));
  if (!view.launches_nodes) return view;
  view.launches_in_progress = surroundings_.ledger.LaunchesInProgress(key_.provider);
  view.pool.limit = config_->Limit().resources();
  view.pool.used = UsedBy(key_);
  Add(view.pool.used, surroundings_.ledger.PendingIn(key_));
  view.provider.used = UsedByProvider();
  try {
    view.provider.limit = provider()->AvailableQuota().resources();
  } catch (...) {
    for (auto& [name, label] : view.labels) label.is_unknown = true;
  }
  return view;
}

sched::PoolView PoolWorker::View() const {
  sched::PoolView view = PlainView();
  Ledger::Awaited awaited = surroundings_.ledger.AwaitedIn(key_.provider);
  view.launches_in_progress += awaited.turns;
  view.provider.reserved = std::move(awaited.resources);
  for (const auto& [order, handler] : waiting_) {
    const sched::FillPlan& plan = handler->plan();
    view.is_waiting = view.is_waiting || plan.misses_capacity();
    for (const auto& [resource, amount] : plan.pool_shortage) view.pool.reserved.insert(resource);
  }
  return view;
}

sched::PoolView PoolWorker::ViewFor(const sched::ServiceOrder& order) const {
  sched::PoolView view = PlainView();
  Ledger::Awaited awaited = surroundings_.ledger.AwaitedIn(key_.provider, &order);
  view.launches_in_progress += awaited.turns;
  view.provider.reserved = std::move(awaited.resources);
  for (const auto& [other, handler] : waiting_) {
    if (other >= order) break;
    for (const auto& [resource, amount] : handler->plan().pool_shortage) view.pool.reserved.insert(resource);
  }
  return view;
}

sched::Budget PoolWorker::ProviderBudget() const {
  return provider() == nullptr ? sched::Budget() : PlainView().provider;
}

PoolStatus PoolWorker::Status() const {
  PoolStatus status;
  status.name = key_.pool;
  status.launcher = launcher_id_;
  status.is_registered = is_registered();
  status.is_waiting = entry_.content().is_paused;
  status.priority = config_->priority;
  status.requests = handlers_.size();
  status.limit = config_->Limit().resources();
  status.used = context_.nodes.UsedBy(key_);
  if (provider() != nullptr) {
    status.used = UsedBy(key_);
    Add(status.used, surroundings_.ledger.PendingIn(key_));
  }
  for (const auto& [name, config] : config_->labels) {
    std::size_t free_nodes = context_.nodes.FreeNodes(key_, name).size();
    LabelStatus& label = status.labels.emplace_back(name, IsLabelAvailable(name), free_nodes);
    if (auto fault = faults_.find(name); fault != faults_.end()) label.fault = fault->second;
  }
  return status;
}

sched::Decision PoolWorker::StillAcceptable(const NodeRequest& request) const {
  if (provider() == nullptr) return {};
  return sched::DeclineReason(PlainView(), request);
}

bool PoolWorker::AllDeclined(const NodeRequest& request) const {
  return surroundings_.registry.AllDeclined(request);
}

void PoolWorker::WaitingChanged(Handler& handler) {
  for (const LabelName& label : handler.labels()) takers_.erase({label, &handler});
  waiting_.erase(handler.order());
  if (handler.is_waiting()) {
    waiting_.emplace(handler.order(), &handler);
    for (const LabelName& label : handler.LabelsToReuse()) takers_.emplace(label, &handler);
  }
  entry_.Update(Announcement());
  surroundings_.capacity_changed();
}

bool PoolWorker::IsWaitedFor(const store::StoredNode& node) const {
  return std::ranges::any_of(node.record.type, [&](const LabelName& label) {
    auto taker = takers_.lower_bound({label, nullptr});
    while (taker != takers_.end() && taker->first == label && !taker->second->MayTake(node.id)) ++taker;
    return taker != takers_.end() && taker->first == label;
  });
}

void PoolWorker::LaunchEnded() {
  if (provider_config_->max_concurrency > 0) surroundings_.capacity_changed();
}

void PoolWorker::CloudRefused() {
  SteadyTime until = context_.loop.SteadyNow() + context_.intervals.refusal_memory;
  surroundings_.ledger.CloudRefused(key_.provider, until);
  if (!std::exchange(is_refusal_known_, true)) tasks_.Spawn("forget a refusal", ForgetRefusal());
}

bool PoolWorker::IsCloudFull() const {
  return context_.loop.SteadyNow() < surroundings_.ledger.CloudFullUntil(key_.provider);
}

// Others may try their luck then.
Task<> PoolWorker::ForgetRefusal() {
  // Also when it is cancelled with the session.
  struct Done {
    bool& is_known;
    ~Done() { is_known = false; }
  } done{is_refusal_known_};
  while (IsCloudFull()) co_await context_.loop.SleepUntil(surroundings_.ledger.CloudFullUntil(key_.provider));
  surroundings_.capacity_changed();
}

void PoolWorker::MakeRoom(const sched::FillPlan& plan) {
  if (!context_.duties.deletes) return;
  SteadyTime now = context_.loop.SteadyNow();
  if (now < next_room_) {
    if (!std::exchange(is_look_due_, true)) tasks_.Spawn("make room later", LookAgainAt(next_room_));
    return;
  }
  std::vector<NodeId> victims = ChooseVictims(plan);
  if (victims.empty()) return;
  next_room_ = now + context_.intervals.make_room_holdoff;
  for (const NodeId& id : victims)
    tasks_.Spawn("make room", {"", "", id.value}, Sacrifice(id, surroundings_.ledger.Claim(id)));
}

// Nodes of other pools help where only the provider's quota is short. A wanted node goes, too, when nothing
// else would do: whoever wants it has not taken it, and the request here would wait for ever (D-22).
std::vector<NodeId> PoolWorker::ChooseVictims(const sched::FillPlan& plan) const {
  Resources shortage = plan.pool_shortage;
  for (const auto& [resource, amount] : plan.provider_shortage) {
    shortage[resource] = std::max(shortage[resource], amount);
  }
  // How much of it is missing is unknown, so any node may do.
  if (plan.is_refused) {
    for (auto& [resource, amount] : shortage) amount = std::min(amount, 1.0);
  }
  std::vector<sched::UnusedNode> unused = UnusedNodes(key_);
  if (plan.pool_shortage.empty() || plan.is_refused) {
    for (const PoolKey& pool : context_.nodes.PoolsWithNodes(key_.provider)) {
      if (pool == key_) continue;
      std::vector<sched::UnusedNode> others = UnusedNodes(pool);
      unused.insert(unused.end(), others.begin(), others.end());
    }
  }
  std::vector<NodeId> victims = sched::ChooseVictims(unused, shortage);
  // First what the pool misses, at another time what the provider does.
  if (victims.empty()) victims = sched::ChooseVictims(std::move(unused), plan.pool_shortage);
  return victims;
}

std::vector<sched::UnusedNode> PoolWorker::UnusedNodes(const PoolKey& pool) const {
  auto config = provider_config_->pools.find(pool.pool);
  if (config == provider_config_->pools.end()) return {};
  std::set<LabelName> wanted = surroundings_.wanted_labels();
  auto is_wanted = [&](const LabelName& label) { return wanted.contains(label); };
  std::map<NodeId, sched::UnusedNode> unused;
  for (const auto& [label, label_config] : config->second->labels) {
    for (const NodeId& id : context_.nodes.FreeNodes(pool, label)) {
      const store::StoredNode* node = context_.nodes.Find(id);
      if (node == nullptr) continue;
      // Requests of this pool cannot take nodes of another.
      if (pool == key_ && IsWaitedFor(*node)) continue;
      unused[id] = {.id = id,
                    .is_wanted = std::ranges::any_of(node->record.type, is_wanted),
                    .is_of_other_pool = pool != key_,
                    .ready_since = node->record.state_time,
                    .resources = node->record.resources.value_or(Resources{})};
    }
  }
  std::vector<sched::UnusedNode> nodes;
  for (auto& [id, node] : unused) nodes.push_back(std::move(node));
  return nodes;
}

Task<> PoolWorker::LookAgainAt(SteadyTime when) {
  // Also when it is cancelled with the session.
  struct Done {
    bool& is_due;
    ~Done() { is_due = false; }
  } done{is_look_due_};
  co_await context_.loop.SleepUntil(when);
  CapacityChanged();
}

Task<> PoolWorker::Sacrifice(NodeId id, NodeClaim /*claim*/) {
  auto node = co_await context_.store.nodes.TryLock(id);
  if (!node) co_return;
  WallTime now = context_.loop.Now();
  auto mark = [now](Node& record) {
    if (!record.is_free()) return store::Change::kSkip;
    record.SetState(NodeState::kDeleting, now);
    return store::Change::kWrite;
  };
  bool is_marked = co_await node->Update(mark);
  co_await node->Unlock();
  if (is_marked)
    logger_.About({"", "", id.value}).Info("Deleting unused node to make room for a waiting request");
}

}  // namespace nodepool::launcher
