#include "cli/change_node.h"

#include <fmt/format.h>

#include <ostream>

#include "listing/node_listing.h"

namespace nodepool::cli {
namespace {

// Null when the node is gone. Throws when somebody keeps the lock.
Task<std::optional<store::LockedNode>> LockOrExplain(Context& context, NodeId id) {
  std::optional<store::StoredNode> node = co_await context.store.nodes.Read(id);
  if (!node) co_return std::nullopt;
  SteadyTime deadline = context.loop.SteadyNow() + kLockTimeout;
  std::exception_ptr error;
  std::optional<store::LockedNode> locked;
  try {
    locked = co_await context.store.nodes.Lock(id, deadline);
  } catch (...) {
    error = std::current_exception();
  }
  if (error && VerdictOf(error) == Verdict::kNotFound) co_return std::nullopt;
  if (error) std::rethrow_exception(error);
  if (!locked) {
    throw Error(
        Verdict::kConflict,
        fmt::format("Timeout trying to acquire lock /nodepool/nodes/{}/lock: the node is in use, or being "
                    "launched or deleted",
                    id));
  }
  co_return std::move(locked);
}

Task<> PrintNode(Context& context, NodeId id) {
  std::optional<store::StoredNode> node = co_await context.store.nodes.Read(id);
  if (node) {
    std::vector<std::string> contenders = co_await context.store.nodes.Contenders(id);
    node->contenders = {contenders.begin(), contenders.end()};
  }
  std::vector<const store::StoredNode*> rows;
  if (node) rows.push_back(&*node);
  Print(context, ListNodes(rows, listing::NodeColumns::kBrief), Output::kTable);
}

// The whole deletion, as a launcher does it. The node is locked.
Task<> DeleteMachine(Context& context, store::LockedNode& node) {
  std::unique_ptr<driver::Provider> provider = context.make_provider(node.record().provider);
  WallTime now = context.loop.Now();
  auto mark = [now](Node& record) {
    record.SetState(NodeState::kDeleting, now);
    return store::Change::kWrite;
  };
  std::exception_ptr error;
  bool is_removed = false;
  try {
    co_await node.Update(mark);
    NodeId id = node.id();
    Node record = node.record();
    co_await provider->DeleteResources(id, record);
    co_await node.Remove();
    is_removed = true;
  } catch (...) {
    error = std::current_exception();
  }
  co_await IgnoreCancellation();
  co_await provider->Stop();
  if (!is_removed) co_await node.Unlock();
  if (error) std::rethrow_exception(error);
}

}  // namespace

Task<int> DeleteNow(Context& context, std::string text) {
  NodeId id(text);
  std::optional<store::LockedNode> locked;
  if (IsNodeId(text)) locked = co_await LockOrExplain(context, id);
  if (!locked) {
    context.out << "Node id " << text << " not found\n";
    co_return 0;
  }
  const ProviderName& provider = locked->record().provider;
  if (!context.config->providers.contains(provider)) {
    context.out << "Provider " << provider.value << " for node ID " << text
                << " not defined on this launcher\n";
    co_await locked->Unlock();
    co_return 0;
  }
  co_await DeleteMachine(context, *locked);
  co_await PrintNode(context, id);
  co_return 0;
}

Task<int> ChangeNode(Context& context, std::string text, NodeState state,
                     std::optional<std::string> comment) {
  NodeId id(text);
  std::optional<store::LockedNode> locked;
  if (IsNodeId(text)) locked = co_await LockOrExplain(context, id);
  if (!locked) {
    context.out << "Node id " << text << " not found\n";
    co_return 0;
  }
  std::exception_ptr error;
  WallTime now = context.loop.Now();
  auto change = [state, now, comment](Node& node) {
    node.SetState(state, now);
    if (comment) node.comment = *comment;
    return store::Change::kWrite;
  };
  try {
    co_await locked->Update(change);
  } catch (...) {
    error = std::current_exception();
  }
  co_await IgnoreCancellation();
  co_await locked->Unlock();
  if (error) std::rethrow_exception(error);
  co_await PrintNode(context, id);
  co_return 0;
}

}  // namespace nodepool::cli
