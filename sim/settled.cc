#include "sim/settled.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/image.h"
#include "model/node.h"

namespace nodepool::sim {
namespace {

using Violation = Inspector::Violation;

Resources LimitOf(const drivers::FakeLimits& cloud) {
  return {{"cores", cloud.cores}, {"instances", cloud.instances}, {"ram", cloud.ram}};
}

bool HasRoomFor(const Scenario& scenario, const Inspector& inspector, const LabelName& label) {
  Resources need = Scenario::NeedOf(label);
  return std::ranges::any_of(scenario.pools, [&](const auto& entry) {
    const auto& [key, pool] = entry;
    return pool->labels.contains(label) && pool->max_servers > 0 &&
           Fits(pool->Limit().resources(), inspector.UsedIn(key.provider, key.pool), need) &&
           Fits(LimitOf(scenario.clouds.at(key.provider).limits),
                inspector.UsedIn(key.provider, std::nullopt), need);
  });
}

int FreeNodes(const Inspector& inspector, const LabelName& label) {
  return static_cast<int>(std::ranges::count_if(inspector.nodes(), [&](const auto& entry) {
    return entry.second.record.is_free() && entry.second.record.has_label(label);
  }));
}

std::optional<Violation> UnsettledRequest(const Scenario& scenario, const Inspector& inspector) {
  for (const auto& [id, request] : inspector.requests()) {
    bool is_owed = request.requestor == kMinReadyRequestor && !request.node_types.empty() &&
                   request.state != RequestState::kFulfilled &&
                   !HasRoomFor(scenario, inspector, request.node_types.front());
    if (!is_owed)
      return Violation{fmt::format("request {} is still {}", id, ToString(*request.state)), {id.value}};
  }
  // Two sweeps remove what was not removed at once; missing min-ready nodes are then launched.
  constexpr Duration kSweeps = std::chrono::minutes(3);
  for (const auto& [id, created] : inspector.request_lock_directories()) {
    if (!inspector.requests().contains(id) && inspector.now() - created > kSweeps)
      return Violation{fmt::format("the lock directory of request {} is left", id), {id.value}};
  }
  return std::nullopt;
}

std::optional<Violation> UnsettledNode(const Inspector& inspector) {
  for (const auto& [id, node] : inspector.nodes()) {
    std::vector<std::string> ids = {id.value, node.record.allocated_to.value};
    if (!node.record.is_free())
      return Violation{fmt::format("node {} is {}{}", id, ToString(*node.record.state),
                                   node.record.allocated_to.empty() ? "" : " for a request"),
                       ids};
    if (IsForValidation(node.record))
      return Violation{fmt::format("node {} is left of a validation", id), ids};
    if (inspector.IsLocked(id)) return Violation{fmt::format("the ready node {} is locked", id), ids};
    if (inspector.MachineOf(node.record) == nullptr)
      return Violation{fmt::format("the ready node {} has no machine", id), ids};
  }
  return std::nullopt;
}

std::optional<Violation> UnsettledMachine(const Scenario& scenario, const Inspector& inspector,
                                          Clouds& clouds) {
  for (const auto& [provider, settings] : scenario.clouds) {
    for (const auto& [id, server] : clouds.all.Find(provider)->servers()) {
      bool is_known = std::ranges::any_of(inspector.nodes(), [&](const auto& entry) {
        return inspector.MachineOf(entry.second.record) == &server;
      });
      auto owner = server.metadata.find("nodepool_node_id");
      std::string node = owner == server.metadata.end() ? "" : owner->second;
      bool is_served = std::ranges::any_of(
          scenario.pools, [&](const auto& entry) { return entry.first.provider == provider; });
      if (!is_known && is_served)
        return Violation{
            fmt::format("machine {} of {} has no record (made for node {})", id.substr(0, 8), provider, node),
            {node, id.substr(0, 8)}};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Violation> FindUnsettled(const Scenario& scenario, const Inspector& inspector, Clouds& clouds) {
  if (auto found = UnsettledRequest(scenario, inspector)) return found;
  if (auto found = UnsettledNode(inspector)) return found;
  if (auto found = UnsettledMachine(scenario, inspector, clouds)) return found;
  for (const auto& [label, config] : scenario.common.labels) {
    int have = FreeNodes(inspector, label);
    if (have < config.min_ready && HasRoomFor(scenario, inspector, label))
      return Violation{fmt::format("{} of {} min-ready nodes of {}", have, config.min_ready, label), {}};
  }
  return std::nullopt;
}

}  // namespace nodepool::sim
