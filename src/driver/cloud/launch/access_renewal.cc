#include "driver/cloud/launch/access_renewal.h"

#include "async/attempt.h"
#include "async/deadline.h"
#include "driver/free_node.h"
#include "driver/records_environment.h"

namespace nodepool::driver::cloud {

namespace {

constexpr Duration kRenewalLimit = std::chrono::seconds(60);

}  // namespace

Task<> AccessRenewal::Run() {
  std::vector<store::StoredNode> ready;
  for (const NodeId& id : environment_.records.nodes.OfProvider(config_.name)) {
    const store::StoredNode* node = environment_.records.nodes.Find(id);
    if (node != nullptr && node->record.is_free() && !node->is_locked()) ready.push_back(*node);
  }
  std::erase_if(failed_, [this](const NodeId& id) { return environment_.records.nodes.Find(id) == nullptr; });
  for (store::StoredNode& node : ready) co_await Check(std::move(node));
}

Task<> AccessRenewal::Check(store::StoredNode node) {
  NodeAccess access{node.record.connection_port.value(), node.record.driver_data.value()};
  Outcome<AccessState> asked = co_await Attempt(adapter_.StateOfAccess(access));
  if (!asked || *asked == AccessState::kLasts) co_return;
  AccessState state = *asked;
  NodeId id = node.id;
  SteadyTime deadline = environment_.loop.SteadyNow() + kRenewalLimit;
  Task<> work = Renew(node, std::move(access));
  Outcome<> renewed = co_await Attempt(
      WithDeadline(environment_.loop, deadline, "renewing the access of a node", std::move(work)));
  if (renewed) {
    failed_.erase(id);
    co_return;
  }
  if (state == AccessState::kEnds) co_return co_await MarkForDeletion(std::move(node));
  if (!failed_.insert(id).second) co_return;
  logger_.About(log::OfNode(id))
      .Warning("The access of a ready node ends and could not be renewed; it is tried again: {}",
               renewed.error().message());
}

Task<> AccessRenewal::Renew(store::StoredNode node, NodeAccess access) {
  const boost::json::value external_id = node.record.external_id;
  NodeAccess renewed = co_await adapter_.RenewAccess(external_id, std::move(access));
  auto change = [&external_id, &renewed](Node& record) {
    if (record.external_id != external_id) return store::Change::kSkip;
    record.connection_port = renewed.connection_port;
    record.driver_data = renewed.driver_data;
    return store::Change::kWrite;
  };
  co_await ChangeFreeNode(environment_.records.store, node.id, change);
}

Task<> AccessRenewal::MarkForDeletion(store::StoredNode node) {
  const boost::json::value external_id = node.record.external_id;
  bool is_marked =
      co_await DeleteFreeNode(environment_.records.store, node.id, external_id, environment_.loop.Now());
  if (!is_marked) co_return;
  logger_.About(log::OfNode(node.id))
      .Warning("The access of a ready node ends and could not be renewed: the node is deleted");
}

}  // namespace nodepool::driver::cloud
