#include "cli/commands/change_node.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "async/cleanup.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/node_selection.h"
#include "listing/node_listing.h"

namespace nodepool::cli {
namespace {

using LockedOrNone = std::optional<store::LockedNode>;

// None if the node is gone. Throws if another client holds the lock.
Task<LockedOrNone> LockOrExplain(Context& context, std::string text) {
  std::optional<NodeId> given = ParseNodeId(text);
  if (!given) co_return std::nullopt;
  NodeId id = *given;
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

Task<std::optional<store::StoredNode>> ReadForList(Context& context, NodeId id) {
  std::optional<store::StoredNode> node = co_await context.store.nodes.Read(id);
  if (node) {
    std::vector<std::string> contenders = co_await context.store.nodes.Contenders(id);
    node->contenders = {contenders.begin(), contenders.end()};
  }
  co_return node;
}

// Prints those of the nodes that still exist.
Task<> PrintNodes(Context& context, std::vector<NodeId> ids) {
  std::vector<store::StoredNode> nodes;
  for (const NodeId& id : ids) {
    std::optional<store::StoredNode> node = co_await ReadForList(context, id);
    if (node) nodes.push_back(std::move(*node));
  }
  std::vector<const store::StoredNode*> rows;
  for (const store::StoredNode& node : nodes) rows.push_back(&node);
  Print(context, ListNodes(rows, listing::NodeColumns::kBrief), Output::kTable);
}

// Deletes the machine and its record as a launcher does. Afterwards `node` is empty and needs no unlocking.
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

// False, after a message, if there is nothing to delete.
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

// False, after a message, if the node does not exist.
Task<bool> ChangeLocked(Context& context, std::string text, LockedOrNone& node,
                        std::function<store::Change(Node&)> change) {
  if (!node) {
    context.out << "Node id " << text << " not found\n";
    co_return false;
  }
  co_await node->Update(std::move(change));
  co_return true;
}

// Called under the node's lock. False, after a message, if the node does not exist.
using ChangeOne = std::function<Task<bool>(std::string text, LockedOrNone& node)>;

Task<bool> LockAndChange(Context& context, std::string text, ChangeOne change) {
  auto work = [&](LockedOrNone& node) { return change(text, node); };
  bool is_changed = co_await Bracket(LockOrExplain(context, text), work, &UnlockNode);
  co_return is_changed;
}

// Changes the nodes one after the other; a failure for one node does not stop the others.
Task<int> ChangeEach(Context& context, std::vector<std::string> texts, ChangeOne change) {
  std::vector<NodeId> changed;
  int status = 0;
  for (const std::string& text : texts) {
    Outcome<bool> outcome = co_await Attempt(LockAndChange(context, text, change));
    if (FailedWith(outcome, Verdict::kCancelled, Verdict::kLostSession)) outcome.error().Rethrow();
    if (!outcome) {
      context.logger.Error("{}", outcome.error().message());
      status = 1;
    } else if (*outcome) {
      changed.push_back(*ParseNodeId(text));
    }
  }
  if (!changed.empty()) co_await PrintNodes(context, std::move(changed));
  co_return status;
}

void AddDelete(CLI::App& app, Invocation& invocation) {
  auto is_now = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("delete", "delete nodes");
  OnNodes(*command, invocation, [is_now](Context& context, std::vector<std::string> ids) {
    return *is_now ? DeleteNow(context, std::move(ids))
                   : ChangeNodes(context, std::move(ids), NodeState::kDeleting);
  });
  command->add_flag("--now", *is_now,
                    "delete machine and record from here, and wait until they are gone; "
                    "a launcher registers the slot of a static host again");
}

// Why the text cannot be written to a record; empty if it can.
std::string RefuseBadText(const std::string& text) {
  constexpr std::size_t kLongest = 1000;
  if (!IsValidUtf8(text)) return "it is not UTF-8";
  return text.size() > kLongest ? "it is longer than 1000 bytes" : "";
}

void AddHold(CLI::App& app, Invocation& invocation) {
  auto reason = std::make_shared<std::optional<std::string>>();
  CLI::App* command = app.add_subcommand("hold", "keep nodes for inspection");
  OnNodes(*command, invocation, [reason](Context& context, std::vector<std::string> ids) {
    return ChangeNodes(context, std::move(ids), NodeState::kHold, *reason);
  });
  command->add_option("--reason", *reason, "comment in the nodes' records")
      ->check(&RefuseBadText)
      ->type_name("TEXT");
}

}  // namespace

Task<int> DeleteNow(Context& context, std::vector<std::string> ids) {
  auto work = [&](std::string text, LockedOrNone& node) { return DeleteLocked(context, text, node); };
  int status = co_await ChangeEach(context, std::move(ids), work);
  co_return status;
}

Task<int> ChangeNodes(Context& context, std::vector<std::string> ids, NodeState state,
                      std::optional<std::string> comment) {
  auto change = [&context, state, comment](Node& node) {
    node.SetState(state, context.loop.Now());
    if (comment) node.comment = *comment;
    return store::Change::kWrite;
  };
  auto work = [&](std::string text, LockedOrNone& node) { return ChangeLocked(context, text, node, change); };
  int status = co_await ChangeEach(context, std::move(ids), work);
  co_return status;
}

void RegisterChangeNode(CLI::App& app, Invocation& invocation) {
  AddDelete(app, invocation);
  AddHold(app, invocation);
}

}  // namespace nodepool::cli
