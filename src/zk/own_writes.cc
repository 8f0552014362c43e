#include "zk/own_writes.h"

#include <set>
#include <utility>

namespace nodepool::zk {
namespace {

constexpr std::size_t kSequenceDigits = 10;

}  // namespace

std::string OwnWrites::FindTarget(std::string_view path, EventType event) const {
  const auto& under_way = state_->under_way;
  if (under_way.empty()) return "";
  if (under_way.contains(path)) return std::string(path);
  if (event != EventType::kCreated || path.size() < kSequenceDigits) return "";
  std::string_view prefix = path.substr(0, path.size() - kSequenceDigits);
  return under_way.contains(prefix) ? std::string(prefix) : "";
}

OwnWrites::Write OwnWrites::Begin(std::string target) const { return Write(state_, std::move(target)); }

// Of several changes of one znode the last one is what the transaction leaves.
OwnWrites::Sets OwnWrites::Begin(const std::vector<Op>& ops) const {
  Sets sets;
  std::set<std::string_view> seen;
  for (std::size_t i = ops.size(); i-- > 0;) {
    const auto* set = std::get_if<SetOp>(&ops[i]);
    if (set && seen.insert(set->path).second) sets.writes_.emplace(i, Begin(set->path));
  }
  return sets;
}

void OwnWrites::Sets::End(const std::vector<Op>& ops, const MultiResult& answer) {
  if (!answer.ok()) return;
  for (auto& [place, write] : writes_) {
    const auto& set = std::get<SetOp>(ops[place]);
    write.Succeed(set.path, {set.data, answer.results[place].stat});
  }
}

OwnWrites::Write::Write(std::shared_ptr<State> state, std::string target)
    : state_(std::move(state)), target_(std::move(target)) {
  ++state_->under_way[target_];
}

OwnWrites::Write::~Write() { End("", nullptr); }

void OwnWrites::Write::End(const std::string& path, const NodeData* node) {
  std::shared_ptr<State> state = std::exchange(state_, nullptr);
  if (!state) return;
  auto entry = state->under_way.find(target_);
  if (--entry->second == 0) state->under_way.erase(entry);
  state->listeners.Notify(target_, path, node);
}

}  // namespace nodepool::zk
