#include "listing/delayed_requests.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/find_or_empty.h"

namespace nodepool::listing {
namespace {

using Place = Problem::Place;
using Indexes = std::set<std::size_t>;  // of problems
using Places = std::map<LabelName, std::vector<Place>>;
// A label, of any provider or of the requested one.
using Want = std::pair<LabelName, ProviderName>;

template <class Id>
bool Fits(const Id& pattern, const Id& id) {
  return pattern.empty() || pattern == id;
}

bool Covers(const Place& stopped, const Place& place) {
  return Fits(stopped.provider, place.provider) && Fits(stopped.pool, place.pool) &&
         Fits(stopped.label, place.label);
}

// Of all labels that pools offer without a fault: where.
Places OfferedPlaces(const std::map<std::string, Component>& components) {
  Places places;
  for (const auto& [path, component] : components) {
    for (const LabelName& label : component.supported_labels) {
      if (component.label_faults.contains(label)) continue;
      places[label].push_back({component.provider_name, component.name.value_or(PoolName()), label});
    }
  }
  return places;
}

Places ConfiguredPlaces(const Configured& configured) {
  Places places;
  for (const auto& [pool, labels] : configured.pool_labels) {
    for (const LabelName& label : labels) places[label].push_back({pool.provider, pool.pool, label});
  }
  return places;
}

bool IsOnItsWay(const NodeId& id, const store::NodeCache& nodes) {
  std::optional<NodeState> state = nodes.Find(id)->record.state;
  return state == NodeState::kBuilding || state == NodeState::kReady;
}

bool HasAllNodes(const store::StoredRequest& request, const store::NodeCache& nodes) {
  auto on_their_way = std::ranges::count_if(nodes.OfRequest(request.id),
                                            [&](const NodeId& id) { return IsOnItsWay(id, nodes); });
  return static_cast<std::size_t>(on_their_way) >= request.record.node_types.size();
}

// A provider that is requested and does not have the label binds nobody.
std::vector<Place> PlacesOf(const Places& places, const LabelName& label, const ProviderName& requested) {
  const std::vector<Place>& all = FindOrEmpty(places, label);
  std::vector<Place> wanted;
  std::ranges::copy_if(all, std::back_inserter(wanted),
                       [&](const Place& place) { return place.provider == requested; });
  return wanted.empty() ? all : wanted;
}

// What stops launches where.
class Stops {
 public:
  Stops(const Problems& problems, const StatusRecords& records)
      : problems_(problems),
        offered_(OfferedPlaces(records.caches.components.all())),
        configured_(ConfiguredPlaces(records.configured)) {}

  // The problems that stop the label everywhere; empty: it can be launched somewhere.
  const Indexes& Of(const LabelName& label, const ProviderName& requested) {
    auto [known, is_new] = known_.try_emplace({label, requested});
    if (is_new) known->second = Find(label, requested);
    return known->second;
  }

 private:
  Indexes Find(const LabelName& label, const ProviderName& requested) const {
    Indexes all = At({{}, {}, label});
    for (const Place& place : PlacesOf(offered_, label, requested)) {
      Indexes here = At(place);
      if (here.empty()) return {};
      all.merge(here);
    }
    for (const Place& place : PlacesOf(configured_, label, requested)) all.merge(At(place));
    return all;
  }

  Indexes At(const Place& place) const {
    Indexes found;
    for (std::size_t i = 0; i < problems_.size(); ++i) {
      if (std::ranges::any_of(problems_[i].stops, [&](const Place& stop) { return Covers(stop, place); }))
        found.insert(i);
    }
    return found;
  }

  const Problems& problems_;
  Places offered_;
  Places configured_;  // also where no launcher offers them
  std::map<Want, Indexes> known_;
};

Indexes DelayedBy(const NodeRequest& request, Stops& stops) {
  Indexes all;
  for (const LabelName& label : request.node_types) {
    const Indexes& of_label = stops.Of(label, request.provider);
    all.insert(of_label.begin(), of_label.end());
  }
  return all;
}

}  // namespace

void CountDelayedRequests(Problems& problems, const StatusRecords& records) {
  bool is_any_stopped = std::ranges::any_of(problems, [](const Problem& p) { return !p.stops.empty(); });
  if (!is_any_stopped) return;
  Stops stops(problems, records);
  for (const store::StoredRequest* request : WaitingRequests(records.caches.requests)) {
    Indexes delaying = DelayedBy(request->record, stops);
    if (delaying.empty() || HasAllNodes(*request, records.caches.nodes)) continue;
    for (std::size_t index : delaying) {
      Problem& problem = problems[index];
      ++problem.delayed_requests;
      if (!problem.since) problem.since = WaitsSince(request->record);
    }
  }
}

}  // namespace nodepool::listing
