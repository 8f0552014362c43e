#include "sched/requests/victims.h"

#include <algorithm>

namespace nodepool::sched {
namespace {

bool IsCovered(const Resources& missing) {
  return std::ranges::all_of(missing, [](const auto& entry) { return entry.second <= 0; });
}

Resources Rest(Resources missing, const Resources& freed) {
  for (auto& [resource, amount] : missing) {
    if (auto it = freed.find(resource); it != freed.end()) amount = ExactSum(amount, -it->second);
  }
  return missing;
}

bool Helps(const UnusedNode& node, const Resources& missing) {
  return std::ranges::any_of(missing, [&](const auto& entry) {
    auto it = node.resources.find(entry.first);
    return entry.second > 0 && it != node.resources.end() && it->second > 0;
  });
}

auto Preference(const UnusedNode& node) {
  return std::tie(node.is_wanted, node.is_of_other_pool, node.ready_since, node.id);
}

// Removes the victims that are not needed, the least preferred first.
void Spare(std::vector<UnusedNode>& victims, const Resources& shortage) {
  for (std::size_t i = victims.size(); i-- > 0;) {
    Resources missing = shortage;
    for (std::size_t other = 0; other < victims.size(); ++other) {
      if (other != i) missing = Rest(std::move(missing), victims[other].resources);
    }
    if (IsCovered(missing)) victims.erase(victims.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void SortByPreference(std::vector<UnusedNode>& unused) {
  std::ranges::sort(unused, [](const auto& a, const auto& b) { return Preference(a) < Preference(b); });
}

}  // namespace

std::vector<NodeId> ChooseVictims(std::vector<UnusedNode> unused, const Resources& shortage) {
  SortByPreference(unused);
  Resources missing = shortage;
  std::vector<UnusedNode> victims;
  for (UnusedNode& node : unused) {
    if (!Helps(node, missing)) continue;
    missing = Rest(std::move(missing), node.resources);
    victims.push_back(std::move(node));
  }
  if (!IsCovered(missing)) return {};
  Spare(victims, shortage);
  std::vector<NodeId> ids;
  for (UnusedNode& node : victims) ids.push_back(std::move(node.id));
  return ids;
}

std::vector<NodeId> ChooseSome(std::vector<UnusedNode> unused, const Resources& needed, std::size_t count) {
  SortByPreference(unused);
  std::vector<NodeId> ids;
  for (UnusedNode& node : unused) {
    if (ids.size() == count) break;
    if (Helps(node, needed)) ids.push_back(std::move(node.id));
  }
  return ids;
}

}  // namespace nodepool::sched
