#include "cli/commands/node_selection.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "async/cleanup.h"
#include "cli/confirmation.h"
#include "cli/filter_arguments.h"
#include "cli/unknown_names.h"
#include "listing/node_listing.h"
#include "store/cache/node_cache.h"

namespace nodepool::cli {
namespace {

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

}  // namespace

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

}  // namespace nodepool::cli
