#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "async/task.h"
#include "cli/command.h"
#include "cli/commands/commands.h"
#include "cli/show_listing.h"
#include "listing/record_listing.h"
#include "listing/selection.h"
#include "operate/actions.h"
#include "store/cache/cached_records.h"

namespace nodepool::cli {

namespace {

// Which nodes a command is for.
struct NodeSelection {
  std::vector<std::string> ids;  // as given on the command line
  listing::RowFilter filter;     // without ids: nodes that match all of this
  bool is_confirmed = false;     // several nodes may match without a confirmation
};

using listing::Listing;

Task<Listing> FillAndKeep(Context& context, store::NodeCache& cache, const listing::RowFilter& filter) {
  cache.Start();
  co_await cache.WaitSynced();
  std::vector<const store::StoredNode*> nodes;
  for (const auto& [id, node] : cache.all()) nodes.push_back(&node);
  Listing matches = ListNodes(nodes, listing::NodeColumns::kBrief);
  for (const std::string& unknown : UnknownWords(*context.config, matches, filter))
    context.logger.Warning("{}", unknown);
  Keep(matches, filter);
  co_return matches;
}

// The nodes' ids; given ids are not looked up. Nothing, after a message, if several match without a
// confirmation. `verb` names the change: "delete".
Task<std::optional<std::vector<std::string>>> SelectNodes(Context& context, NodeSelection selection,
                                                          std::string verb) {
  if (!selection.ids.empty()) co_return selection.ids;
  store::NodeCache cache(context.loop, context.store.tree.client());
  auto stop = [&cache] { return cache.Stop(); };
  Listing matches = co_await WithCleanup(FillAndKeep(context, cache, selection.filter), stop);
  bool may_change = co_await MayChange(context, matches, selection.is_confirmed, verb, "nodes");
  if (!may_change) co_return std::nullopt;
  if (matches.rows.empty()) context.out << "No node matches\n";
  std::vector<std::string> ids;
  for (const std::vector<Cell>& row : matches.rows) ids.emplace_back(*row.front().text());
  co_return ids;
}

NodeSelection SelectionOf(NodeSelection selection, const FilterArguments& filters) {
  selection.filter = filters.Filter(ColumnsOf(listing::NodeColumns::kBrief));
  if (selection.ids.empty() && selection.filter.empty())
    throw CLI::RequiredError("NODE, or --provider, --state or --label");
  if (!selection.ids.empty() && !selection.filter.empty())
    throw CLI::ValidationError("NODE", "give either ids or --provider, --state and --label");
  return selection;
}

Task<int> ChangeSelected(Context& context, NodeSelection selection, std::string verb,
                         std::function<Task<int>(Context&, std::vector<std::string>)> change) {
  std::optional<std::vector<std::string>> ids = co_await SelectNodes(context, std::move(selection), verb);
  if (!ids) co_return 1;
  Task<int> changing = change(context, std::move(*ids));
  co_return co_await std::move(changing);
}

// Declares ids, --provider, --state, --label and --yes for a command, which then calls `change` with
// the ids; its status is that of the command.
void OnNodes(CLI::App& command, Invocation& invocation,
             std::function<Task<int>(Context&, std::vector<std::string> ids)> change) {
  auto selection = std::make_shared<NodeSelection>();
  auto filters = std::make_shared<FilterArguments>();
  command.add_option("NODE", selection->ids, "ids of nodes; leading zeros may be left out")->type_name("");
  filters->AddTo(command, ColumnsOf(listing::NodeColumns::kBrief));
  command.add_flag("--yes", selection->is_confirmed, "do not ask when several nodes match");
  command.callback([&invocation, selection, filters, change, verb = command.get_name()] {
    invocation.command = [chosen = SelectionOf(*selection, *filters), change, verb](Context& context) {
      return ChangeSelected(context, chosen, verb, change);
    };
  });
}

using Locked = std::expected<store::LockedNode, operate::Refusal>;

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

// Deletes the machine and its record as a launcher does. Afterwards `node` needs no unlocking.
Task<> DeleteMachine(Context& context, driver::OperatorTools& tools, Locked& node) {
  WallTime now = context.loop.Now();
  auto mark = [now](Node& record) {
    record.SetState(NodeState::kDeleting, now);
    return store::Change::kWrite;
  };
  co_await node->Update(mark);
  NodeId id = node->id();
  Node record = node->record();
  co_await tools.DeleteResources(id, record);
  co_await node->Remove();
}

Task<operate::Done> DeleteLocked(Context& context, Locked& node) {
  if (!node) co_return std::unexpected(node.error());
  const ProviderName& name = node->record().provider;
  if (!context.config->providers.contains(name)) {
    co_return operate::NotFound(
        fmt::format("Provider {} for node ID {} not defined on this launcher", name, node->id()));
  }
  std::unique_ptr<driver::OperatorTools> tools = context.make_tools(name);
  auto stop = [&tools] { return tools->Stop(); };
  co_await WithCleanup(DeleteMachine(context, *tools, node), stop);
  co_return operate::Done();
}

Task<> UnlockIfLocked(Locked& node) {
  if (node) co_await node->Unlock();
}

using ChangeOne = std::function<Task<operate::Done>(NodeId id)>;

Task<operate::Done> ChangeNamed(std::string text, ChangeOne change) {
  std::optional<NodeId> id = operate::ParseNodeId(text);
  if (!id) co_return operate::NotFound(fmt::format("Node id {} not found", text));
  Task<operate::Done> changing = change(*id);
  operate::Done done = co_await std::move(changing);
  co_return done;
}

// Changes the nodes one after the other; a failure for one node does not stop the others.
Task<int> ChangeEach(Context& context, std::vector<std::string> texts, ChangeOne change) {
  std::vector<NodeId> changed;
  int status = 0;
  for (const std::string& text : texts) {
    Outcome<operate::Done> outcome = co_await Attempt(ChangeNamed(text, change));
    if (FailedWith(outcome, Verdict::kCancelled, Verdict::kLostSession)) outcome.error().Rethrow();
    if (!outcome) {
      context.logger.Error("{}", outcome.error().message());
      status = 1;
    } else if (*outcome) {
      if (std::optional<NodeId> id = operate::ParseNodeId(text)) changed.push_back(*id);
    } else {
      context.logger.Error("{}", outcome->error().why);
      status = 1;
    }
  }
  if (!changed.empty()) co_await PrintNodes(context, std::move(changed));
  co_return status;
}

// Why the text is no time for a hold; empty if it is.
std::string RefuseBadTime(const std::string& text) {
  Expected<Duration> time = ParseDuration(text);
  if (!time) return time.error().message();
  return *time < std::chrono::seconds(1) ? "it is less than a second" : "";
}

// `nodepool delete --now ID...`: deletes the machines from this process and removes the records. For a static
// host it removes only the record; a launcher registers its slot again. If a deletion fails the record stays
// `deleting`, and launchers continue.
Task<int> DeleteNow(Context& context, std::vector<std::string> ids) {
  auto work = [&context](Locked& node) { return DeleteLocked(context, node); };
  auto change = [&context, work](NodeId id) {
    Task<Locked> locking = operate::LockNode(context.loop, context.store, std::move(id), kLockTimeout);
    return Bracket(std::move(locking), work, &UnlockIfLocked);
  };
  return ChangeEach(context, std::move(ids), change);
}

// `nodepool delete ID...`, `hold ID... [--reason TEXT] [--for TIME]` and `unhold ID...`: change each node
// under its lock, and print those that were changed (operations.md 5.5, 13.3). If a node does not exist, its
// lock is held for 5 s by another client, or its state does not allow the change, logs an error, leaves the
// record unchanged and returns status 1; the other nodes are changed.
Task<int> DeleteNodes(Context& context, std::vector<std::string> ids) {
  auto change = [&context](NodeId id) {
    return operate::DeleteNode(context.loop, context.store, std::move(id), kLockTimeout);
  };
  return ChangeEach(context, std::move(ids), change);
}

Task<int> HoldNodes(Context& context, std::vector<std::string> ids, operate::HoldOrder order) {
  auto change = [&context, order](NodeId id) {
    return operate::HoldNode(context.loop, context.store, std::move(id), order, kLockTimeout);
  };
  return ChangeEach(context, std::move(ids), change);
}

Task<int> UnholdNodes(Context& context, std::vector<std::string> ids) {
  auto change = [&context](NodeId id) {
    return operate::EndHold(context.loop, context.store, std::move(id), kLockTimeout);
  };
  return ChangeEach(context, std::move(ids), change);
}

void AddDelete(CLI::App& app, Invocation& invocation) {
  auto is_now = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("delete", "delete nodes");
  OnNodes(*command, invocation, [is_now](Context& context, std::vector<std::string> ids) {
    return *is_now ? DeleteNow(context, std::move(ids)) : DeleteNodes(context, std::move(ids));
  });
  command->add_flag("--now", *is_now,
                    "delete machine and record from here, and wait until they are gone; "
                    "a launcher registers the slot of a static host again");
}

void AddHold(CLI::App& app, Invocation& invocation) {
  struct Values {
    std::optional<std::string> reason;
    std::optional<std::string> time;
  };
  auto values = std::make_shared<Values>();
  CLI::App* command = app.add_subcommand("hold", "keep nodes for inspection");
  OnNodes(*command, invocation, [values](Context& context, std::vector<std::string> ids) {
    operate::HoldOrder order{values->reason, std::nullopt};
    if (values->time) {
      Expected<Duration> time = ParseDuration(*values->time);
      if (!time) throw time.error();
      order.seconds = std::chrono::floor<std::chrono::seconds>(*time).count();
    }
    return HoldNodes(context, std::move(ids), std::move(order));
  });
  command->add_option("--reason", values->reason, "comment in the nodes' records")
      ->check(&RefuseBadReason)
      ->type_name("TEXT");
  command
      ->add_option("--for", values->time,
                   "how long, e.g. 12h or 3d; without it as the record says, and until max-hold-age")
      ->check(&RefuseBadTime)
      ->type_name("TIME");
}

void AddUnhold(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("unhold", "give held nodes back, so that they are deleted");
  OnNodes(*command, invocation, &UnholdNodes);
}

}  // namespace

void RegisterChangeNode(CLI::App& app, Invocation& invocation) {
  AddDelete(app, invocation);
  AddHold(app, invocation);
  AddUnhold(app, invocation);
}

}  // namespace nodepool::cli
