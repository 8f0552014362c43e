#include "driver/cloud/missing_machines.h"

#include <algorithm>

#include "async/attempt.h"
#include "async/deadline.h"
#include "base/scope_exit.h"
#include "driver/free_node.h"
#include "driver/records_environment.h"

namespace nodepool::driver::cloud {

namespace {

constexpr Duration kListLimit = std::chrono::seconds(120);
constexpr Duration kSecondCheck = std::chrono::seconds(10);
constexpr const char* kComment = "the cloud has no machine of this node any more";

bool HasMachine(const Node& record) {
  const boost::json::value& id = record.external_id;
  return id.is_object() || (id.is_string() && !id.as_string().empty());
}

}  // namespace

Task<> MissingMachines::Check() {
  // Two checks at the same time would count one answer twice.
  if (is_checking_ || !environment_.records.nodes.synced()) co_return;
  is_checking_ = true;
  ScopeExit done([this] { is_checking_ = false; });
  Machines before = std::exchange(seen_, {});
  Machines candidates = Candidates();
  if (candidates.empty()) co_return;
  seen_ = co_await Missing(std::move(candidates));
  std::erase_if(noted_, [this](const NodeId& id) { return !seen_.contains(id); });
  const Machines missing = seen_;
  for (const auto& [id, external_id] : missing) {
    auto known = before.find(id);
    if (known == before.end() || known->second != external_id) continue;
    Outcome<> handled = co_await Attempt(Handle(id, external_id));
    if (!handled) {
      logger_.About({"", "", id.str()})
          .Warning("The record of a node whose machine is gone could not be changed; it is tried again: {}",
                   handled.error().message());
    }
  }
}

Task<> MissingMachines::FollowAnnouncements() {
  while (true) {
    co_await announced_.Wait();
    announced_.Reset();
    for (int check = 1; check <= 2; ++check) {
      Outcome<> checked = co_await Attempt(Check());
      if (!checked) {
        logger_.Warning("Provider {} announced that a machine is taken away, but could not be read: {}",
                        config_.name, checked.error().message());
      }
      if (check == 1) co_await environment_.loop.SleepFor(kSecondCheck);
    }
  }
}

MissingMachines::Machines MissingMachines::Candidates() const {
  Machines candidates;
  for (const NodeId& id : environment_.records.nodes.OfProvider(config_.name)) {
    const store::StoredNode* node = environment_.records.nodes.Find(id);
    if (node == nullptr || !HasMachine(node->record)) continue;
    if (node->record.is_free() || node->record.state == NodeState::kInUse)
      candidates.emplace(id, node->record.external_id);
  }
  return candidates;
}

Task<MissingMachines::Machines> MissingMachines::Missing(Machines candidates) {
  std::vector<boost::json::value> ids;
  for (const auto& [id, external_id] : candidates) ids.push_back(external_id);
  SteadyTime deadline = environment_.loop.SteadyNow() + kListLimit;
  std::vector<boost::json::value> gone = co_await WithDeadline(
      environment_.loop, deadline, "looking for missing machines", adapter_.MissingMachines(std::move(ids)));
  std::erase_if(candidates, [&gone](const auto& candidate) {
    return std::ranges::find(gone, candidate.second) == gone.end();
  });
  co_return candidates;
}

Task<> MissingMachines::Handle(NodeId id, boost::json::value external_id) {
  const store::StoredNode* node = environment_.records.nodes.Find(id);
  if (node == nullptr) co_return;
  if (node->record.is_free()) {
    co_await MarkForDeletion(std::move(id), std::move(external_id));
  } else if (node->record.state == NodeState::kInUse) {
    co_await NoteInUse(std::move(id), std::move(external_id));
  }
}

Task<> MissingMachines::MarkForDeletion(NodeId id, boost::json::value external_id) {
  auto change = [this, &external_id](Node& record) {
    if (record.external_id != external_id) return store::Change::kSkip;
    record.SetState(NodeState::kDeleting, environment_.loop.Now());
    return store::Change::kWrite;
  };
  bool is_marked = co_await ChangeFreeNode(environment_.records.store, id, change);
  if (!is_marked) co_return;
  logger_.About({"", "", id.str()})
      .Warning("The machine of a ready node is gone from provider {}: the node is deleted", config_.name);
}

Task<> MissingMachines::NoteInUse(NodeId id, boost::json::value external_id) {
  if (noted_.contains(id)) co_return;
  logger_.About({"", "", id.str()})
      .Warning("The machine of a node in use is gone from provider {}", config_.name);
  auto change = [&external_id](Node& record) {
    bool is_same = record.state == NodeState::kInUse && record.external_id == external_id;
    if (!is_same || record.comment) return store::Change::kSkip;
    record.comment = kComment;
    return store::Change::kWrite;
  };
  noted_.insert(id);
  co_await environment_.records.store.nodes.UpdateUnlocked(std::move(id), change);
}

}  // namespace nodepool::driver::cloud
