#include "runners/set/set_health.h"

#include <fmt/format.h>

#include <algorithm>

namespace nodepool::runners {
namespace {

constexpr int kFailuresInARow = 3;
constexpr Duration kFirstHold = std::chrono::minutes(1);
constexpr Duration kLongestHold = std::chrono::minutes(10);
constexpr Duration kNodeHold = std::chrono::minutes(1);
constexpr int kMostDoublings = 4;

}  // namespace

void SetHealth::NoNode(std::string reason, WallTime now) {
  node_fault_ = {
      fmt::format("they get no nodes: {}", reason),
      "Check the label and its pools: `nodepool label-list` and `nodepool request-list` say what they lack"};
  node_failed_ = now;
  held_until_ = std::max(held_until_.value_or(now), now + kNodeHold);
}

void SetHealth::DidNotStart(std::string reason, WallTime now) {
  start_fault_ = {fmt::format("they do not start on their nodes: {}", reason),
                  "Try the same by hand: `nodepool exec -i KEY LABEL -- ls actions-runner`; where that "
                  "works, see the log "
                  "in .nodepool-runner on a node"};
  if (++failures_in_a_row_ < kFailuresInARow) return;
  int doublings = std::min(failures_in_a_row_ - kFailuresInARow, kMostDoublings);
  held_until_ =
      std::max(held_until_.value_or(now), now + std::min(kFirstHold * (1 << doublings), kLongestHold));
}

void SetHealth::Started() {
  failures_in_a_row_ = 0;
  start_fault_ = {};
  node_fault_ = {};
  node_failed_.reset();
  held_until_.reset();
}

void SetHealth::Deprecated(std::string version, WallTime now) {
  start_fault_ = {fmt::format("they get no jobs: the service refuses the version {} of the runner",
                              version.empty() ? "(unknown)" : version),
                  "Build an image with a newer runner; one node is tried every ten minutes"};
  failures_in_a_row_ = kFailuresInARow;
  held_until_ = now + kLongestHold;
}

std::optional<WallTime> SetHealth::HeldBackUntil(WallTime now) const {
  return held_until_ && now < *held_until_ ? held_until_ : std::nullopt;
}

bool SetHealth::LacksNodes(WallTime now) const { return node_failed_ && now - *node_failed_ <= kNodeHold; }

SetFault SetHealth::Fault(WallTime now) const {
  if (!service_fault_.text.empty()) return service_fault_;
  if (failures_in_a_row_ >= kFailuresInARow) return start_fault_;
  return LacksNodes(now) ? node_fault_ : SetFault();
}

}  // namespace nodepool::runners
