#include "drivers/static/static_host.h"

#include <algorithm>

#include "async/deadline.h"
#include "async/task.h"
#include "driver/records_environment.h"

namespace nodepool::drivers {

bool HasUnlockedPeer(const store::ComponentRegistry* components, const ProviderName& provider) {
  if (components == nullptr) return false;
  return std::ranges::any_of(components->all(), [&](const auto& entry) {
    const Component& component = entry.second;
    if (component.locks_slots) return false;
    if (component.kind == ComponentKind::kPool) return component.provider_name == provider;
    return component.kind == ComponentKind::kLauncher && component.state != ComponentState::kRunning;
  });
}

namespace {

bool OccupiesSlot(const Node& record) {
  return record.state != NodeState::kBuilding && record.state != NodeState::kDeleting &&
         record.state != NodeState::kDeleted;
}

}  // namespace

HostIdentity IdentityOf(const Node& record) {
  int port = static_cast<int>(record.connection_port.integer().value_or(0));
  return {record.hostname.value_or(""), record.username.value_or(""), port};
}

std::vector<int> SlotTable::EmptySlots() const {
  std::vector<int> empty;
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    if (slots[slot].empty()) empty.push_back(static_cast<int>(slot));
  }
  return empty;
}

SlotTable MakeSlotTable(int slot_count, std::vector<const store::StoredNode*> records) {
  std::ranges::stable_partition(records, [](const auto* node) { return !node->record.is_free(); });
  SlotTable table;
  table.slots.resize(static_cast<std::size_t>(std::max(0, slot_count)));
  std::vector<NodeId> unslotted;
  for (const store::StoredNode* node : records) {
    if (!OccupiesSlot(node->record)) continue;
    std::int64_t slot = node->record.slot.value_or(-1);
    bool is_placed = slot >= 0 && slot < slot_count && table.slots[static_cast<std::size_t>(slot)].empty();
    if (is_placed) {
      table.slots[static_cast<std::size_t>(slot)] = node->id;
    } else {
      unslotted.push_back(node->id);
    }
  }
  for (NodeId& id : unslotted) {
    auto free = std::ranges::find_if(table.slots, [](const NodeId& slot) { return slot.empty(); });
    if (free != table.slots.end()) {
      *free = std::move(id);
    } else {
      table.excess.push_back(std::move(id));
    }
  }
  return table;
}

namespace {

constexpr const char* kLauncher = "static driver";
constexpr Duration kRetryRegistration = std::chrono::seconds(1);
constexpr Duration kResolveLimit = std::chrono::seconds(10);
// A launcher that has deleted a node registers its slot at once; others wait this long.
constexpr Duration kPeerGoesFirst = std::chrono::seconds(2);
// The request to which nodes are allocated while they are registered beside a peer. It does not exist, so
// nodes left by a crash soon become free.
const RequestId kRegistration("registration");

// A name as one component of a path.
std::string Escaped(const std::string& text) {
  std::string escaped;
  for (char c : text) {
    if (c == '/' || c == '%' || static_cast<unsigned char>(c) < ' ') {
      escaped += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace

Task<> Deregister(store::Store& store, Loop& loop, NodeId id) {
  auto change = [&loop](Node& record) {
    record.SetState(NodeState::kDeleting, loop.Now());
    return store::Change::kWrite;
  };
  co_await driver::ChangeFreeNode(store, std::move(id), change);
}

void HostRecords::Follow(const NodeId& id, const store::StoredNode* before, const store::StoredNode* after) {
  if (before != nullptr) {
    auto host = by_host_.find(IdentityOf(before->record));
    if (host != by_host_.end() && host->second.erase(id) > 0 && host->second.empty()) by_host_.erase(host);
  }
  if (after != nullptr) by_host_[IdentityOf(after->record)].insert(id);
}

const std::set<NodeId>& HostRecords::Of(const HostIdentity& identity) const {
  static const std::set<NodeId> none;
  auto host = by_host_.find(identity);
  return host == by_host_.end() ? none : host->second;
}

namespace {

bool IsSsh(const StaticNode& node) {
  return node.connection.connection_type == "ssh" || node.connection.connection_type == "network_cli";
}

}  // namespace

Task<HostFindings> ContactHost(Loop& loop, const StaticNode& node, const HostContact& contact) {
  HostFindings findings;
  bool is_ssh = IsSsh(node);
  if (is_ssh && !node.host_key_checking) {
    findings.host_keys = node.host_keys;
  } else {
    SteadyTime deadline = loop.SteadyNow() + node.timeout;
    findings.host_keys = co_await contact.scan(node.name, node.connection.connection_port, is_ssh, deadline);
    for (const std::string& expected : is_ssh ? node.host_keys : std::vector<std::string>()) {
      if (std::ranges::find(findings.host_keys, expected) == findings.host_keys.end()) {
        throw Error(Verdict::kInvalid,
                    "its host keys are not the configured ones; check the machine, or correct host-key");
      }
    }
  }
  SteadyTime deadline = loop.SteadyNow() + kResolveLimit;
  findings.address = co_await WithDeadline(loop, deadline, "resolving the name", contact.resolve(node.name));
  co_return findings;
}

StaticHost::StaticHost(driver::ProviderEnvironment& environment, const driver::ProviderConfig& provider,
                       const StaticPool& pool, const StaticNode& node, const HostContact& contact,
                       const HostRecords& records, std::function<void()> fault_changed)
    : environment_(environment),
      provider_(provider),
      pool_(pool),
      node_(node),
      contact_(contact),
      records_(records),
      identity_(IdentityOf(node)),
      fault_changed_(std::move(fault_changed)) {}

Task<> StaticHost::Run() {
  bool is_first = true;
  while (true) {
    wake_.Reset();
    Outcome<> synced = co_await Attempt(SyncUnlessIdle(is_first));
    bool is_logged = !synced && fault_ && fault_->message() == synced.error().message();
    if (!synced && !is_logged)
      logger_.Warning("Static node {} of provider {}: {}", identity_.ToString(), provider_.name,
                      synced.error().message());
    is_first = false;
    co_await wake_.Wait();
  }
}

Task<> StaticHost::SyncUnlessIdle(bool is_first) {
  if (is_idle_) co_return;  // a successor handles the host
  if (is_first) {
    co_await FirstSync();
  } else {
    co_await Sync();
  }
}

Task<> StaticHost::FirstSync() {
  Outcome<HostFindings> findings = co_await Attempt(CheckHost());
  if (!findings) {
    co_await DeregisterAll();
    findings.error().Rethrow();
  }
  co_await RemoveExcess();
  co_await UpdateRecords(*findings);
  co_await RegisterLocked(*findings);
}

Task<> StaticHost::Sync() {
  co_await RemoveExcess();
  if (Table().EmptySlots().empty()) co_return;
  if (HasUnlockedPeer(environment_.records.components, provider_.name)) {
    co_await environment_.loop.SleepFor(kPeerGoesFirst);
    if (Table().EmptySlots().empty()) co_return;
  }
  HostFindings findings = co_await CheckHost();
  co_await RegisterLocked(std::move(findings));
}

Task<> StaticHost::RemoveExcess() {
  SlotTable table = Table();
  for (const NodeId& id : table.excess)
    co_await Deregister(environment_.records.store, environment_.loop, id);
}

Task<> StaticHost::DeregisterAll() {
  std::vector<NodeId> ids;
  for (const store::StoredNode* node : CachedRecords()) ids.push_back(node->id);
  for (const NodeId& id : ids) co_await Deregister(environment_.records.store, environment_.loop, id);
}

// Two launchers with the same provider must not fill a slot twice (D-85). A crash leaves complete records or
// none; the lock ends with the session.
Task<> StaticHost::RegisterLocked(HostFindings findings) {
  if (Table().EmptySlots().empty()) co_return;
  std::string name = "static/" + Escaped(provider_.name.str()) + "/" + Escaped(identity_.ToString());
  auto use = [this, &findings](std::optional<zk::HeldLock>& lock) {
    return RegisterUnder(lock, std::move(findings));
  };
  auto release = [this](std::optional<zk::HeldLock>& lock) { return Release(lock); };
  co_await Bracket(environment_.records.store.tree.TryLockNamed(std::move(name)), use, release);
}

Task<> StaticHost::RegisterUnder(std::optional<zk::HeldLock>& lock, HostFindings findings) {
  if (lock) co_return co_await RegisterEmptySlots(std::move(findings));
  // Another launcher is registering; check what is left to do when it has finished.
  co_await environment_.loop.SleepFor(kRetryRegistration);
  wake_.Set();
}

Task<> StaticHost::Release(std::optional<zk::HeldLock>& lock) {
  if (lock) co_await environment_.records.store.tree.Unlock(std::move(*lock));
}

// The cache may lag behind the changes of the lock's previous holder.
Task<> StaticHost::RegisterEmptySlots(HostFindings findings) {
  co_await environment_.records.nodes.CatchUp();
  SlotTable table = Table();
  if (HasUnlockedPeer(environment_.records.components, provider_.name)) {
    co_return co_await RegisterBesidePeer(std::move(findings), table.EmptySlots());
  }
  for (int slot : table.EmptySlots()) {
    if (is_idle_) co_return;
    NodeId id = co_await environment_.records.store.nodes.Create(NewRecord(findings, slot));
    logger_.About(log::OfNode(id)).Info("Registered static node {} slot {}", identity_.ToString(), slot);
  }
}

// The peer may have seen the same slots empty and be about to register them. So our nodes stay reserved for
// as long as its check of the host may last; those that it registered as well are removed again, and all of
// them if that cannot be determined.
Task<> StaticHost::RegisterBesidePeer(HostFindings findings, std::vector<int> slots) {
  std::vector<store::LockedNode> reserved;
  std::vector<int> won;
  auto settle = [this, &reserved, &won] { return SettleAll(reserved, won); };
  co_await WithCleanup(Compete(std::move(findings), std::move(slots), reserved, won), settle);
}

Task<> StaticHost::Compete(HostFindings findings, std::vector<int> slots,
                           std::vector<store::LockedNode>& reserved, std::vector<int>& won) {
  co_await Reserve(std::move(findings), std::move(slots), reserved);
  co_await environment_.loop.SleepFor(node_.timeout);
  co_await environment_.records.nodes.CatchUp();
  std::vector<const store::StoredNode*> others = CachedRecords();
  std::erase_if(others, [&](const store::StoredNode* node) {
    return std::ranges::any_of(reserved, [&](const auto& ours) { return ours.id() == node->id; });
  });
  won = MakeSlotTable(node_.max_parallel_jobs, std::move(others)).EmptySlots();
}

Task<> StaticHost::SettleAll(std::vector<store::LockedNode>& reserved, const std::vector<int>& won) {
  std::optional<Failure> failure;
  for (store::LockedNode& node : reserved) {
    bool is_wanted = std::ranges::find(won, node.record().slot.value_or(-1)) != won.end();
    Outcome<> settled = co_await Attempt(Settle(node, is_wanted));
    if (!settled && !failure) failure = settled.error();
  }
  if (failure) failure->Rethrow();
}

Task<> StaticHost::Reserve(HostFindings findings, std::vector<int> slots,
                           std::vector<store::LockedNode>& reserved) {
  for (int slot : slots) {
    if (is_idle_) co_return;
    Node record = NewRecord(findings, slot);
    record.SetState(NodeState::kInit, environment_.loop.Now());
    record.allocated_to = kRegistration;
    auto offer = [this](Node& node) {
      node.SetState(NodeState::kReady, environment_.loop.Now());
      return store::Change::kWrite;
    };
    store::LockedNode node = co_await environment_.records.store.nodes.CreateLocked(std::move(record), offer);
    reserved.push_back(std::move(node));
  }
}

// An operator or another program may have written meanwhile; then the node is left to them.
Task<> StaticHost::Settle(store::LockedNode& node, bool is_wanted) {
  auto settle = [this, is_wanted](Node& record) {
    if (record.state != NodeState::kReady || record.allocated_to != kRegistration)
      return store::Change::kSkip;
    record.allocated_to = RequestId();
    if (!is_wanted) record.SetState(NodeState::kDeleting, environment_.loop.Now());
    return store::Change::kWrite;
  };
  bool is_ours = co_await node.Update(settle);
  if (is_ours && !is_wanted) co_return co_await node.Remove();
  co_await node.Unlock();
  if (!is_ours) co_return;
  logger_.About(log::OfNode(node.id()))
      .Info("Registered static node {} slot {}", identity_.ToString(), node.record().slot.value_or(0));
}

Task<> StaticHost::UpdateRecords(HostFindings findings) {
  std::vector<NodeId> outdated;
  for (const store::StoredNode* node : CachedRecords()) {
    if (node->record.is_free() && !IsUpToDate(node->record, findings)) outdated.push_back(node->id);
  }
  for (const NodeId& id : outdated) {
    auto change = [this, &findings](Node& record) {
      SetFields(findings, record);
      return store::Change::kWrite;
    };
    bool is_changed = co_await driver::ChangeFreeNode(environment_.records.store, id, change);
    log::Logger logger = logger_.About(log::OfNode(id));
    if (is_changed) {
      logger.Info("Updated static node {}", identity_.ToString());
    } else {
      logger.Warning("Static node {} is in use and gets its new configuration after use",
                     identity_.ToString());
    }
  }
}

Task<bool> StaticHost::IsAlive() {
  if (!node_.host_key_checking) co_return true;
  SteadyTime deadline = environment_.loop.SteadyNow() + node_.timeout;
  Outcome<std::vector<std::string>> answer =
      co_await Attempt(contact_.scan(node_.name, node_.connection.connection_port, false, deadline));
  NoteAnswer(answer ? std::nullopt : std::optional(answer.error()));
  if (!answer) logger_.Info("Static node {} is withdrawn: it does not answer", identity_.ToString());
  co_return answer.has_value();
}

Task<HostFindings> StaticHost::CheckHost() {
  Outcome<HostFindings> findings = co_await Attempt(ContactHost(environment_.loop, node_, contact_));
  NoteAnswer(findings ? std::nullopt : std::optional(findings.error()));
  if (!findings) findings.error().Rethrow();
  co_return std::move(*findings);
}

// Each cause is logged once until the host answers again.
void StaticHost::NoteAnswer(std::optional<Failure> fault) {
  bool is_changed =
      fault.has_value() != fault_.has_value() || (fault && fault->verdict() != fault_->verdict());
  if (fault && logged_.insert(fault->message()).second)
    logger_.Warning("Static node {} of provider {} cannot be used: {}. It is asked again each minute",
                    identity_.ToString(), provider_.name, fault->message());
  if (!fault) {
    if (fault_)
      logger_.Info("Static node {} of provider {} answers again", identity_.ToString(), provider_.name);
    logged_.clear();
  }
  fault_ = std::move(fault);
  if (is_changed) fault_changed_();
}

std::vector<const store::StoredNode*> StaticHost::CachedRecords() const {
  std::vector<const store::StoredNode*> records;
  for (const NodeId& id : records_.Of(identity_)) {
    if (const store::StoredNode* node = environment_.records.nodes.Find(id)) records.push_back(node);
  }
  return records;
}

SlotTable StaticHost::Table() const { return MakeSlotTable(node_.max_parallel_jobs, CachedRecords()); }

bool StaticHost::HasSlot(const NodeId& id) const {
  std::vector<NodeId> slots = Table().slots;
  return std::ranges::find(slots, id) != slots.end();
}

bool StaticHost::IsUpToDate(const Node& record, const HostFindings& findings) const {
  return record.pool == pool_.name && record.attributes == pool_.node_attributes &&
         record.type == node_.labels && record.shell_type == node_.connection.shell_type &&
         record.connection_type == node_.connection.connection_type &&
         record.python_path == node_.connection.python_path && record.host_keys == findings.host_keys;
}

void StaticHost::SetFields(const HostFindings& findings, Node& record) const {
  record.pool = pool_.name;
  record.attributes = pool_.node_attributes;
  record.type = node_.labels;
  record.username = node_.connection.username;
  record.connection_port = node_.connection.connection_port;
  record.connection_type = node_.connection.connection_type;
  record.shell_type = node_.connection.shell_type;
  record.python_path = node_.connection.python_path;
  record.host_keys = findings.host_keys;
  std::string address = findings.address.to_string();
  if (findings.address.is_v6()) {
    record.public_ipv6 = std::move(address);
  } else {
    record.public_ipv4 = std::move(address);
  }
}

Node StaticHost::NewRecord(const HostFindings& findings, int slot) const {
  Node record;
  record.SetState(NodeState::kReady, environment_.loop.Now());
  record.created_time = record.state_time;
  record.provider = provider_.name;
  record.launcher = kLauncher;
  record.external_id = node_.name;
  record.hostname = node_.name;
  record.interface_ip = node_.name;
  record.slot = slot;
  SetFields(findings, record);
  return record;
}

}  // namespace nodepool::drivers
