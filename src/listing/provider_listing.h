#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "listing/configured.h"
#include "listing/listing.h"
#include "model/component.h"
#include "model/node.h"
#include "store/cache/cached_records.h"
#include "store/cache/record_cache.h"

namespace nodepool::listing {

// How many nodes a row counts, in groups of states that matter to operators.
struct NodeCounts {
  int ready = 0;
  int building = 0;  // includes init and testing
  int in_use = 0;
  int held = 0;
  int ending = 0;  // used, deleting, failed and so on: deleted or to be deleted

  void Add(std::optional<NodeState> state);
};

// A column for each group, and its cells.
void AppendCountColumns(std::vector<Column>& columns);
void AppendCounts(std::vector<Cell>& row, const NodeCounts& counts);

// What launchers announce of labels, as it concerns the whole cluster.

// Why labels cannot be launched, by label: the faults of all pools that offer them, "c1 main: no flavor ...".
// A label that a pool offers without a fault is left out.
std::map<LabelName, std::vector<std::string>> FaultsOfLabels(
    const std::map<std::string, Component>& components);

struct LabelShortage {
  int missing = 0;  // min-ready nodes
  WallTime since{};
  std::string why;
};

// The labels of which fewer nodes are free than their min-ready, while launchers fail to get more.
std::map<LabelName, LabelShortage> ShortagesOf(const Configured& configured,
                                               const std::map<std::string, Component>& components,
                                               const store::NodeCache& nodes);

std::vector<Column> LabelColumns();

// `label-list`: a row for each label that is configured, offered by a registered pool, or on a node, by name.
// A node with several labels counts for each.
Listing ListLabels(const Configured& configured, const std::map<std::string, Component>& components,
                   const store::NodeCache& nodes, const store::RequestCache& requests,
                   const store::ImageCache& images, WallTime now);

// The state of a provider that no launcher serves.
inline constexpr std::string_view kUnserved = "unserved";
// The state of one that an operator has paused and that could else be used.
inline constexpr std::string_view kPausedProvider = "paused";

std::vector<Column> ProviderColumns();

// A row for each provider and each launcher that serves it while the launcher is registered. `drivers` are
// the configured providers; providers that only launchers know are also shown, and those whose only trace is
// that they are paused. One whose breaker is open is failing; the reason of one that can be used names all
// its open breakers.
Listing ListProviders(const std::map<ProviderName, std::string>& drivers,
                      const std::map<std::string, Component>& components, const store::NodeCache& nodes,
                      const store::RecordCache<ProviderPause>& pauses,
                      const store::RecordCache<Breaker>& breakers);

std::vector<Column> PoolColumns();

// A row for each pool that is configured, registered or has nodes, by provider and name: whether a launcher
// serves it, and its nodes. "paused": every launcher that serves it waits for capacity; "failing": none of
// them can use the provider, or the breaker of pool or provider is open.
Listing ListPools(const Configured& configured, const std::map<std::string, Component>& components,
                  const store::NodeCache& nodes, const store::RecordCache<Breaker>& breakers);

std::vector<Column> DaemonColumns();

// The URL of a launcher's page.
using PageOf = std::function<std::string(const Component& launcher)>;

// Every registered launcher and builder: builders first, each kind by its name in ZooKeeper. Launchers of the
// Python implementation have no page.
Listing ListDaemons(const std::map<std::string, Component>& components, const PageOf& page_of);

}  // namespace nodepool::listing
