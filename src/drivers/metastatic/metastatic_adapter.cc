#include "drivers/metastatic/metastatic_adapter.h"

#include <algorithm>

#include "async/deadline.h"
#include "async/task.h"
#include "base/scope_exit.h"
#include "driver/cloud/metadata.h"

namespace nodepool::drivers {

using driver::cloud::CreateParameters;
using driver::cloud::Instance;
using driver::cloud::MachineReport;
using driver::cloud::Resource;

namespace {

constexpr Duration kRetryPause = std::chrono::seconds(1);
constexpr Duration kReleaseRetry = std::chrono::seconds(60);

NodeId NodeOf(const boost::json::value& external_id) {
  return NodeId(external_id.is_string() ? std::string(external_id.as_string()) : "");
}

}  // namespace

MetastaticAdapter::MetastaticAdapter(const driver::cloud::AdapterEnvironment& environment,
                                     const driver::RecordsEnvironment& records,
                                     std::shared_ptr<const driver::ProviderConfig> config)
    : CloudAdapter(std::move(config)),
      environment_(environment),
      records_(records),
      owner_(OwnerName(config_->name)),
      backing_nodes_(records_.nodes, config_),
      requests_(environment_.loop, records_, backing_nodes_, config_, logger_),
      background_(environment_.loop, logger_) {}

void MetastaticAdapter::Start() {
  auto on_node = [this](const NodeId& id, const store::StoredNode* before, const store::StoredNode* after) {
    if (backing_nodes_.Follow(id, before, after, environment_.loop.Now())) wake_.Set();
  };
  auto on_request = [this](const RequestId& id, const store::StoredRequest* before,
                           const store::StoredRequest* after) {
    if (requests_.Follow(id, before, after)) wake_.Set();
  };
  node_watch_ = records_.nodes.OnChange(on_node);
  request_watch_ = records_.requests->OnChange(on_request);
  background_.Spawn("metastatic provider " + config_->name.str(), Run());
}

Task<Instance> MetastaticAdapter::Create(MachineReport& machine, CreateParameters parameters) {
  NodeId user(parameters.metadata[driver::cloud::kNodeKey]);
  boost::json::value external_id(user.str());
  co_await machine.SetExternalId(std::move(external_id));
  const MetastaticLabel* label = config_->FindLabel(parameters.label->name);
  if (label == nullptr) throw Error(Verdict::kInvalid, "the provider no longer has this label");
  machine.SetState("waiting for a slot of a backing node");
  std::shared_ptr<BackingRequests::Waiter> waiter = requests_.AddWaiter(user, *label);
  ScopeExit leave([this, waiter] { requests_.RemoveWaiter(waiter); });
  wake_.Set();
  Place place = co_await waiter->place.Take();
  Instance instance = co_await Describe(std::move(place), std::move(user), std::move(parameters.metadata));
  // The backing node's keys were scanned earlier; if they are scanned again, the new ones count.
  if (parameters.label->host_key_checking) instance.host_keys.reset();
  co_return instance;
}

// Everything except the slot is copied from the backing node (drivers.md 8.2).
Task<Instance> MetastaticAdapter::Describe(Place place, NodeId user,
                                           std::map<std::string, std::string> metadata) {
  std::optional<store::StoredNode> stored = co_await records_.store.nodes.Read(place.backing_node);
  if (!stored || stored->record.state != NodeState::kInUse) {
    backing_nodes_.MarkFailing(place.backing_node, environment_.loop.Now());
    throw Error(Verdict::kFail, "backing node " + place.backing_node.str() + " has vanished");
  }
  const Node& backing = stored->record;
  Instance instance;
  instance.external_id = user.str();
  instance.name = backing.hostname.value_or("");
  instance.interface_ip = backing.interface_ip;
  instance.public_ipv4 = backing.public_ipv4;
  instance.public_ipv6 = backing.public_ipv6;
  instance.private_ipv4 = backing.private_ipv4;
  instance.cloud = backing.cloud;
  instance.az = backing.az;
  instance.region = backing.region;
  instance.slot = place.slot;
  instance.driver_data = ToDriverData(place, user, metadata);
  instance.metadata = std::move(metadata);
  instance.quota = driver::QuotaInformation::OneInstance();
  instance.connection.username = backing.username;
  instance.connection.python_path = backing.python_path;
  instance.connection.shell_type = backing.shell_type;
  instance.connection.connection_type = backing.connection_type.value_or("ssh");
  boost::json::value port = backing.connection_port.value();
  if (port.is_int64() || port.is_object()) instance.connection.connection_port = std::move(port);
  instance.host_keys = backing.host_keys;
  boost::json::value attributes = backing.attributes.value();
  if (attributes.is_object()) instance.node_attributes = std::move(attributes);
  co_return instance;
}

Task<> MetastaticAdapter::Delete(MachineReport& machine, boost::json::value external_id) {
  machine.SetState("giving the slot back");
  NodeId user = NodeOf(external_id);
  std::optional<NodeId> backing = backing_nodes_.PlaceOf(user);
  if (!backing) {
    // The launcher has just started.
    std::optional<store::StoredNode> stored = co_await records_.store.nodes.Read(user);
    std::optional<Place> place = stored ? ParsePlace(stored->record.driver_data.value()) : std::nullopt;
    if (place) backing = place->backing_node;
  }
  if (!backing) co_return;
  co_await Vacate(std::move(*backing), std::move(user));
  wake_.Set();
}

Task<> MetastaticAdapter::Vacate(NodeId backing, NodeId user) {
  std::optional<BackingNode> written;
  auto change = [this, &backing, &user, &written](Node& record) {
    written.reset();
    std::optional<BackingNode> node = BackingNodeInUse(record, owner_);
    if (!node) return store::Change::kSkip;
    node = backing_nodes_.Completed(backing, std::move(*node));
    if (!RemoveUser(user, owner_, *node, record)) return store::Change::kSkip;
    written = std::move(node);
    return store::Change::kWrite;
  };
  bool is_written = co_await records_.store.nodes.UpdateUnlocked(backing, change);
  if (is_written && written && backing_nodes_.Find(backing) != nullptr)
    backing_nodes_.Set(backing, std::move(*written), environment_.loop.Now());
}

Task<std::vector<Instance>> MetastaticAdapter::ListInstances() { co_return std::vector<Instance>(); }

Task<std::vector<Resource>> MetastaticAdapter::ListResources() {
  is_sweep_due_ = true;
  wake_.Set();
  co_return std::vector<Resource>();
}

Task<> MetastaticAdapter::DeleteResource(Resource) { co_return; }

void MetastaticAdapter::NotifyNodescanFailure(const driver::LabelConfig&,
                                              const boost::json::value& external_id) {
  std::optional<NodeId> backing = backing_nodes_.PlaceOf(NodeOf(external_id));
  if (!backing) return;
  logger_.Warning("Backing node {} gives out no more slots: the host keys of one could not be read",
                  *backing);
  backing_nodes_.MarkFailing(*backing, environment_.loop.Now());
  wake_.Set();
}

Task<> MetastaticAdapter::Stop() {
  node_watch_.Reset();
  request_watch_.Reset();
  co_await background_.Stop();
  co_await requests_.WithdrawAll();
}

Task<> MetastaticAdapter::Run() {
  co_await records_.nodes.WaitSynced();
  co_await records_.requests->WaitSynced();
  for (const auto& [id, node] : records_.nodes.all())
    backing_nodes_.Follow(id, nullptr, &node, environment_.loop.Now());
  for (const auto& [id, request] : records_.requests->all()) requests_.Follow(id, nullptr, &request);
  while (true) {
    wake_.Reset();
    Outcome<> done = co_await Attempt(Turn());
    if (!done) {
      logger_.Warning("Provider {}: {}; retrying", config_->name, done.error().message());
      co_await environment_.loop.SleepFor(kRetryPause);
      continue;
    }
    std::optional<WallTime> release = backing_nodes_.next_release();
    if (!release) {
      co_await wake_.Wait();
      continue;
    }
    Duration pause = std::max(*release - environment_.loop.Now(), Duration(0));
    SteadyTime deadline = environment_.loop.SteadyNow() + pause;
    co_await EndsBy(environment_.loop, deadline, "a change", wake_.Wait());
  }
}

Task<> MetastaticAdapter::Turn() {
  for (const NodeId& id : std::set<NodeId>(backing_nodes_.unverified())) {
    std::optional<std::string> owner = co_await records_.store.nodes.Owner(id);
    backing_nodes_.Verify(id, owner == owner_, environment_.loop.Now());
  }
  co_await requests_.AdoptOrphans();
  co_await WriteFailures();
  co_await requests_.FollowRequests();
  co_await Serve();
  co_await requests_.RequestMissing();
  if (std::exchange(is_sweep_due_, false)) co_await Sweep();
  co_await ReleaseIdle();
}

Task<> MetastaticAdapter::WriteFailures() {
  for (const NodeId& id : std::set<NodeId>(backing_nodes_.failing())) {
    auto change = [this, &id](Node& record) {
      std::optional<BackingNode> node = ParseBackingNode(record.user_data.value(), owner_);
      if (!node || node->has_failed || record.state != NodeState::kInUse) return store::Change::kSkip;
      BackingNode failed = backing_nodes_.Completed(id, std::move(*node));
      failed.has_failed = true;
      record.user_data = ToUserData(failed, owner_);
      return store::Change::kWrite;
    };
    co_await records_.store.nodes.UpdateUnlocked(id, change);
  }
}

// Hands out free slots to waiting creations, oldest backing node first.
Task<> MetastaticAdapter::Serve() {
  const std::map<LabelName, const MetastaticLabel*> labels = requests_.WaitingLabels();
  for (const auto& [name, label] : labels) {
    while (true) {
      BackingRequests::Waiters waiting = requests_.WaitingFor(*label);
      std::optional<NodeId> backing = backing_nodes_.WithRoom(name, environment_.loop.Now());
      if (waiting.empty() || !backing) break;
      bool is_known = co_await Occupy(std::move(*backing), std::move(waiting));
      if (!is_known) break;  // the cache will show its state
    }
  }
}

// One write for as many waiters as there are slots. False: the node's record has changed.
Task<bool> MetastaticAdapter::Occupy(NodeId backing, BackingRequests::Waiters waiters) {
  std::optional<BackingNode> written;
  std::vector<std::pair<std::shared_ptr<BackingRequests::Waiter>, int>> placed;
  auto change = [&](Node& record) {
    written.reset();
    placed.clear();
    std::optional<BackingNode> node = ParseBackingNode(record.user_data.value(), owner_);
    if (!node || record.state != NodeState::kInUse) return store::Change::kSkip;
    node = backing_nodes_.Completed(backing, std::move(*node));
    for (const std::shared_ptr<BackingRequests::Waiter>& waiter : waiters) {
      std::optional<int> slot = node->FreeSlot();
      if (!slot || node->has_failed) break;
      if (!waiter->is_alive) continue;
      node->users[*slot] = waiter->node;
      placed.emplace_back(waiter, *slot);
    }
    node->lists_users = true;
    record.user_data = ToUserData(*node, owner_);
    written = std::move(node);
    return placed.empty() ? store::Change::kSkip : store::Change::kWrite;
  };
  bool is_written = co_await records_.store.nodes.UpdateUnlocked(backing, change);
  // What was read is newer than the cache, even if nothing was written.
  if (written && backing_nodes_.Find(backing) != nullptr)
    backing_nodes_.Set(backing, std::move(*written), environment_.loop.Now());
  if (!is_written) co_return written.has_value();
  for (const auto& [waiter, slot] : placed) {
    if (waiter->is_alive) {
      waiter->place.Set({backing, slot});
    } else {
      co_await Vacate(backing, waiter->node);
    }
  }
  co_return true;
}

Task<> MetastaticAdapter::ReleaseIdle() {
  WallTime now = environment_.loop.Now();
  for (const NodeId& id : backing_nodes_.DueForRelease(now)) {
    auto change = [this, &id](Node& record) {
      std::optional<BackingNode> node = ParseBackingNode(record.user_data.value(), owner_);
      bool is_used = node && !backing_nodes_.Completed(id, *node).users.empty();
      if (is_used || record.state != NodeState::kInUse) return store::Change::kSkip;
      record.SetState(NodeState::kUsed, environment_.loop.Now());
      return store::Change::kWrite;
    };
    bool is_released = co_await records_.store.nodes.Release(id, owner_, change);
    if (is_released) logger_.About(log::OfNode(id)).Info("Released an idle backing node");
    backing_nodes_.PostponeRelease(id, environment_.loop.Now() + kReleaseRetry);
  }
}

// Handles users that vanished without a deletion, e.g. erased by an operator, and requests whose node is no
// longer needed.
Task<> MetastaticAdapter::Sweep() {
  std::map<NodeId, NodeId> missing = backing_nodes_.UsersWithoutRecord();
  std::map<NodeId, NodeId> before = std::exchange(missing_, missing);
  for (const auto& [user, backing] : missing) {
    auto known = before.find(user);
    if (known != before.end() && known->second == backing) co_await Vacate(backing, user);
  }
  co_await requests_.WithdrawUnused();
}

}  // namespace nodepool::drivers
