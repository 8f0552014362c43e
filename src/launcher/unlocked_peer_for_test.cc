#include "launcher/unlocked_peer_for_test.h"

#include <set>

namespace nodepool::launcher {

using std::chrono::seconds;
using store::Change;

namespace {

bool IsDead(const Node& node) {
  return node.state == NodeState::kUsed || node.state == NodeState::kInUse ||
         node.state == NodeState::kDeleting || node.state == NodeState::kDeleted;
}

}  // namespace

UnlockedPeer::UnlockedPeer(Loop& loop, testing::MemoryZk& zk, std::uint64_t seed, Settings settings)
    : loop_(loop),
      zk_(zk),
      random_(seed),
      id_(std::to_string(seed)),
      settings_(std::move(settings)),
      client_(zk_.Connect()),
      store_(loop, *client_, random_),
      nodes_(loop, *client_),
      requests_(loop, *client_),
      launcher_(loop, *client_, Self(ComponentKind::kLauncher, ComponentState::kStopped)),
      pool_(loop, *client_, Self(ComponentKind::kPool, ComponentState::kRunning)),
      tasks_(loop, log::Logger("peer")) {}

UnlockedPeer::~UnlockedPeer() = default;

Component UnlockedPeer::Self(ComponentKind kind, ComponentState state) const {
  Component component;
  component.kind = kind;
  component.hostname = "peer";
  component.state = state;
  component.version = "11.0.0";
  if (kind != ComponentKind::kPool) return component;
  component.id = LauncherId("peer-PoolWorker-" + id_);
  component.name = settings_.pool;
  component.provider_name = settings_.provider;
  component.supported_labels = {settings_.label};
  return component;
}

Task<> UnlockedPeer::Stop() {
  zk_.Disconnect(*client_);
  zk_.ExpireSession(*client_);
  co_await client_->Close();
  co_await tasks_.Stop();
  co_await launcher_.Unregister();
  co_await pool_.Unregister();
  co_await nodes_.Stop();
  co_await requests_.Stop();
}

// The launcher is announced before its providers start, its pools when they have.
Task<> UnlockedPeer::Run() {
  nodes_.Start();
  requests_.Start();
  co_await launcher_.Register();
  co_await nodes_.WaitSynced();
  co_await requests_.WaitSynced();
  co_await SyncAll();
  launcher_.Update(Self(ComponentKind::kLauncher, ComponentState::kRunning));
  co_await pool_.Register();
  tasks_.Spawn("serve", ServeRequests());
  tasks_.Spawn("keep hosts", KeepHosts());
}

Task<> UnlockedPeer::ServeRequests() {
  while (true) {
    std::vector<RequestId> waiting;
    for (const auto& [id, request] : requests_.all()) {
      if (request.record.state == RequestState::kRequested) waiting.push_back(id);
    }
    for (const RequestId& id : waiting) co_await Serve(id);
    co_await loop_.SleepFor(seconds(1));
  }
}

Task<> UnlockedPeer::Serve(RequestId id) {
  std::vector<NodeId> free;
  for (const auto& [node_id, node] : nodes_.all()) {
    if (node.record.is_free() && !node.is_locked() && node.record.provider == settings_.provider)
      free.push_back(node_id);
  }
  if (free.empty()) co_return;
  std::optional<store::LockedRequest> request = co_await store_.requests.TryLock(id);
  if (!request) co_return;
  if (request->record().state != RequestState::kRequested) co_return co_await request->Unlock();
  auto to = [this](RequestState state, std::vector<NodeId> nodes) {
    return [state, nodes, now = loop_.Now()](NodeRequest& record) {
      record.SetState(state, now);
      record.nodes = nodes;
      return Change::kWrite;
    };
  };
  auto pending = to(RequestState::kPending, {});
  co_await request->Update(pending);
  for (const NodeId& node_id : free) {
    co_await Scan();
    std::optional<store::LockedNode> node = co_await store_.nodes.TryLock(node_id);
    if (!node) continue;
    auto allocate = [id](Node& record) {
      if (!record.is_free()) return Change::kSkip;
      record.allocated_to = id;
      return Change::kWrite;
    };
    bool is_ours = co_await node->Update(allocate);
    co_await node->Unlock();
    if (!is_ours) continue;
    auto fulfilled = to(RequestState::kFulfilled, {node_id});
    co_await request->UpdateAndUnlock(fulfilled);
    co_return;
  }
  auto requested = to(RequestState::kRequested, {});
  co_await request->UpdateAndUnlock(requested);
}

// One after the other, as the Python implementation does under its lock.
Task<> UnlockedPeer::KeepHosts() {
  while (true) {
    for (int i = 0; i < 12; ++i) {
      co_await loop_.SleepFor(seconds(5));
      co_await DeleteDead();
    }
    co_await SyncAll();
  }
}

Task<> UnlockedPeer::DeleteDead() {
  std::vector<NodeId> dead, left;
  for (const auto& [id, node] : nodes_.all()) {
    if (node.record.provider != settings_.provider || node.is_locked()) continue;
    if (IsDead(node.record)) dead.push_back(id);
    bool is_left = node.record.state == NodeState::kReady && !node.record.allocated_to.empty() &&
                   requests_.Find(node.record.allocated_to) == nullptr;
    if (is_left) left.push_back(id);
  }
  for (const NodeId& id : dead) co_await Delete(id);
  for (const NodeId& id : left) co_await Deallocate(id);
}

Task<> UnlockedPeer::Delete(NodeId id) {
  std::optional<store::LockedNode> node = co_await store_.nodes.TryLock(id);
  if (!node) co_return;
  if (!IsDead(node->record())) co_return co_await node->Unlock();
  SlotKey slot{node->record().hostname.value_or(""), static_cast<int>(node->record().slot.value_or(-1))};
  co_await node->Remove();
  std::vector<NodeId> excess;
  std::map<SlotKey, NodeId> slots = co_await ReadSlots(excess);
  if (!slots.contains(slot)) co_await Register(slot);
}

Task<> UnlockedPeer::Deallocate(NodeId id) {
  std::optional<store::LockedNode> node = co_await store_.nodes.TryLock(id);
  if (!node) co_return;
  auto free = [](Node& record) {
    record.allocated_to = RequestId();
    return Change::kWrite;
  };
  std::optional<store::StoredRequest> request = co_await store_.requests.Read(node->record().allocated_to);
  if (!request && node->record().state == NodeState::kReady) co_await node->Update(free);
  co_await node->Unlock();
}

Task<> UnlockedPeer::SyncAll() {
  std::vector<NodeId> excess;
  std::map<SlotKey, NodeId> slots = co_await ReadSlots(excess);
  for (const auto& [host, count] : settings_.hosts) {
    for (int slot = 0; slot < count; ++slot) {
      if (!slots.contains({host, slot})) co_await Register({host, slot});
    }
  }
  for (const NodeId& id : excess) co_await Deregister(id);
}

Task<std::map<UnlockedPeer::SlotKey, NodeId>> UnlockedPeer::ReadSlots(std::vector<NodeId>& excess) {
  std::map<SlotKey, NodeId> slots;
  std::vector<NodeId> ids = co_await store_.nodes.List();
  for (const NodeId& id : ids) {
    std::optional<store::StoredNode> node = co_await store_.nodes.Read(id);
    if (!node || node->record.provider != settings_.provider) continue;
    if (node->record.state == NodeState::kBuilding || node->record.state == NodeState::kDeleting) continue;
    SlotKey slot{node->record.hostname.value_or(""), static_cast<int>(node->record.slot.value_or(-1))};
    if (!slots.emplace(slot, id).second) excess.push_back(id);
  }
  co_return slots;
}

Task<> UnlockedPeer::Register(SlotKey slot) {
  co_await Scan();
  Node record;
  record.SetState(NodeState::kReady, loop_.Now());
  record.provider = settings_.provider;
  record.pool = settings_.pool;
  record.launcher = "static driver";
  record.type = {settings_.label};
  record.external_id = slot.first;
  record.hostname = slot.first;
  record.interface_ip = slot.first;
  record.username = "zuul";
  record.connection_port = 22;
  record.connection_type = "ssh";
  record.slot = slot.second;
  co_await store_.nodes.Create(std::move(record));
}

Task<> UnlockedPeer::Deregister(NodeId id) {
  std::optional<store::LockedNode> node = co_await store_.nodes.TryLock(id);
  if (!node) co_return;
  auto mark = [now = loop_.Now()](Node& record) {
    if (!record.is_free()) return Change::kSkip;
    record.SetState(NodeState::kDeleting, now);
    return Change::kWrite;
  };
  co_await node->Update(mark);
  co_await node->Unlock();
}

Task<> UnlockedPeer::Scan() {
  co_await loop_.SleepFor(settings_.longest_scan * static_cast<int>(10 + random_.Below(91)) / 100);
}

}  // namespace nodepool::launcher
