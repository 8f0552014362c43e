#include "cli/commands/change_node.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "async/cleanup.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "listing/node_listing.h"

namespace nodepool::cli {
namespace {

using LockedOrNone = std::optional<store::LockedNode>;

// None when the node is gone. Throws when another client keeps the lock.
Task<LockedOrNone> LockOrExplain(Context& context, std::string text) {
  if (!IsNodeId(text)) co_return std::nullopt;
  NodeId id(text);
  std::optional<store::StoredNode> node = co_await context.store.nodes.Read(id);
  if (!node) co_return std::nullopt;
  SteadyTime deadline = context.loop.SteadyNow() + kLockTimeout;
  Outcome<LockedOrNone> locked = co_await Attempt(context.store.nodes.Lock(id, deadline));
  if (FailedWith(locked, Verdict::kNotFound)) co_return std::nullopt;
  if (!locked) locked.error().Rethrow();
  if (!*locked) {
    throw Error(
        Verdict::kConflict,
        fmt::format("Timeout trying to acquire lock /nodepool/nodes/{}/lock: the node is in use, or being "
                    "launched or deleted",
                    id));
  }
  co_return std::move(*locked);
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

// The whole deletion, as a launcher does it. No node is left to unlock.
Task<> DeleteMachine(Context& context, driver::Provider& provider, LockedOrNone& node) {
  WallTime now = context.loop.Now();
  auto mark = [now](Node& record) {
    record.SetState(NodeState::kDeleting, now);
    return store::Change::kWrite;
  };
  co_await node->Update(mark);
  NodeId id = node->id();
  Node record = node->record();
  co_await provider.DeleteResources(id, record);
  co_await node->Remove();
  node.reset();
}

// False, after a message, when there is nothing to delete.
Task<bool> DeleteLocked(Context& context, std::string text, LockedOrNone& node) {
  if (!node) {
    context.out << "Node id " << text << " not found\n";
    co_return false;
  }
  const ProviderName& name = node->record().provider;
  if (!context.config->providers.contains(name)) {
    context.out << "Provider " << name.value << " for node ID " << text << " not defined on this launcher\n";
    co_return false;
  }
  std::unique_ptr<driver::Provider> provider = context.make_provider(name);
  auto stop = [&provider] { return provider->Stop(); };
  co_await WithCleanup(DeleteMachine(context, *provider, node), stop);
  co_return true;
}

// False, after a message, when there is no such node.
Task<bool> ChangeLocked(Context& context, std::string text, LockedOrNone& node,
                        std::function<store::Change(Node&)> change) {
  if (!node) {
    context.out << "Node id " << text << " not found\n";
    co_return false;
  }
  co_await node->Update(std::move(change));
  co_return true;
}

void AddDelete(CLI::App& app, Invocation& invocation) {
  struct Values {
    std::string id;
    bool is_now = false;
  };
  auto values = std::make_shared<Values>();
  CLI::App* command = app.add_subcommand("delete", "delete a node");
  command->add_option("id", values->id, "id of the node")->required()->type_name("");
  command->add_flag("--now", values->is_now,
                    "delete machine and record from here, and wait until they are gone; "
                    "a launcher registers the slot of a static host again");
  OnCommand(*command, invocation, [values](Context& context) {
    return values->is_now ? DeleteNow(context, values->id)
                          : ChangeNode(context, values->id, NodeState::kDeleting);
  });
}

// Of what is written to a record. Empty: it can be.
std::string RefuseBadText(const std::string& text) {
  constexpr std::size_t kLongest = 1000;
  if (!IsValidUtf8(text)) return "it is not UTF-8";
  return text.size() > kLongest ? "it is longer than 1000 bytes" : "";
}

void AddHold(CLI::App& app, Invocation& invocation) {
  struct Values {
    std::string id;
    std::optional<std::string> reason;
  };
  auto values = std::make_shared<Values>();
  CLI::App* command = app.add_subcommand("hold", "keep a node for inspection");
  command->add_option("id", values->id, "id of the node")->required()->type_name("");
  command->add_option("--reason", values->reason, "comment in the node's record")
      ->check(&RefuseBadText)
      ->type_name("TEXT");
  OnCommand(*command, invocation, [values](Context& context) {
    return ChangeNode(context, values->id, NodeState::kHold, values->reason);
  });
}

}  // namespace

Task<int> DeleteNow(Context& context, std::string text) {
  auto work = [&](LockedOrNone& node) { return DeleteLocked(context, text, node); };
  bool is_deleted = co_await Bracket(LockOrExplain(context, text), work, &UnlockNode);
  if (is_deleted) co_await PrintNode(context, NodeId(text));
  co_return 0;
}

Task<int> ChangeNode(Context& context, std::string text, NodeState state,
                     std::optional<std::string> comment) {
  auto change = [&context, state, comment](Node& node) {
    node.SetState(state, context.loop.Now());
    if (comment) node.comment = *comment;
    return store::Change::kWrite;
  };
  auto work = [&](LockedOrNone& node) { return ChangeLocked(context, text, node, change); };
  bool is_changed = co_await Bracket(LockOrExplain(context, text), work, &UnlockNode);
  if (is_changed) co_await PrintNode(context, NodeId(text));
  co_return 0;
}

void RegisterChangeNode(CLI::App& app, Invocation& invocation) {
  AddDelete(app, invocation);
  AddHold(app, invocation);
}

}  // namespace nodepool::cli
