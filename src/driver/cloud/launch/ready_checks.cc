#include "driver/cloud/launch/ready_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "async/deadline.h"
#include "async/task.h"
#include "base/text.h"
#include "driver/provider_environment.h"
#include "driver/records_environment.h"

namespace nodepool::driver::cloud {

namespace {

constexpr Duration kRenewalLimit = std::chrono::seconds(60);

}  // namespace

Task<> AccessRenewal::Run() {
  std::vector<store::StoredNode> ready;
  for (const NodeId& id : environment_.records.nodes.OfProvider(config_.name)) {
    const store::StoredNode* node = environment_.records.nodes.Find(id);
    if (node != nullptr && node->record.is_free() && !node->is_locked()) ready.push_back(*node);
  }
  std::erase_if(failed_, [this](const NodeId& id) { return environment_.records.nodes.Find(id) == nullptr; });
  for (store::StoredNode& node : ready) co_await Check(std::move(node));
}

Task<> AccessRenewal::Check(store::StoredNode node) {
  NodeAccess access{node.record.connection_port.value(), node.record.driver_data.value()};
  Outcome<AccessState> asked = co_await Attempt(adapter_.StateOfAccess(access));
  if (!asked || *asked == AccessState::kLasts) co_return;
  AccessState state = *asked;
  NodeId id = node.id;
  SteadyTime deadline = environment_.loop.SteadyNow() + kRenewalLimit;
  Task<> work = Renew(node, std::move(access));
  Outcome<> renewed = co_await Attempt(
      WithDeadline(environment_.loop, deadline, "renewing the access of a node", std::move(work)));
  if (renewed) {
    failed_.erase(id);
    co_return;
  }
  if (state == AccessState::kEnds) co_return co_await MarkForDeletion(std::move(node));
  if (!failed_.insert(id).second) co_return;
  logger_.About(log::OfNode(id))
      .Warning("The access of a ready node ends and could not be renewed; it is tried again: {}",
               renewed.error().message());
}

Task<> AccessRenewal::Renew(store::StoredNode node, NodeAccess access) {
  const boost::json::value external_id = node.record.external_id;
  NodeAccess renewed = co_await adapter_.RenewAccess(external_id, std::move(access));
  auto change = [&external_id, &renewed](Node& record) {
    if (record.external_id != external_id) return store::Change::kSkip;
    record.connection_port = renewed.connection_port;
    record.driver_data = renewed.driver_data;
    return store::Change::kWrite;
  };
  co_await ChangeFreeNode(environment_.records.store, node.id, change);
}

Task<> AccessRenewal::MarkForDeletion(store::StoredNode node) {
  const boost::json::value external_id = node.record.external_id;
  bool is_marked =
      co_await DeleteFreeNode(environment_.records.store, node.id, external_id, environment_.loop.Now());
  if (!is_marked) co_return;
  logger_.About(log::OfNode(node.id))
      .Warning("The access of a ready node ends and could not be renewed: the node is deleted");
}

namespace {

constexpr Duration kScanLimit = std::chrono::seconds(15);
constexpr Duration kCommandLimit = std::chrono::seconds(60);
constexpr Duration kCommandGrace = std::chrono::seconds(5);
constexpr std::string_view kTcp = "tcp", kSsh = "ssh";

bool HaveOneInCommon(const std::vector<std::string>& keys, const std::vector<std::string>& shown) {
  return std::ranges::any_of(
      keys, [&shown](const std::string& key) { return std::ranges::find(shown, key) != shown.end(); });
}

process::Command CheckCommand(const NodeId& id, const Node& record, const std::string& line) {
  process::Command command;
  command.argv = process::SplitWords(line);
  command.environment = MachineEnvironment(process::OwnEnvironment(), id, record);
  command.timeout = kCommandLimit;
  command.grace = kCommandGrace;
  return command;
}

}  // namespace

Task<std::optional<CheckFailure>> MachineCheck::Run(NodeId id, Node record, std::string how) {
  if (!how.empty() && how != kTcp && how != kSsh)
    return RunCommand(std::move(id), std::move(record), std::move(how));
  bool wants_keys = how == kSsh || (how.empty() && !record.host_keys.empty());
  return Scan(std::move(record), wants_keys);
}

Task<std::optional<CheckFailure>> MachineCheck::Scan(Node record, bool wants_keys) {
  if (!scan_) co_return std::nullopt;
  const std::string host = *record.interface_ip;
  const int port = ConnectionPort(record);
  Gate::Pass place = co_await scans_.Enter();
  SteadyTime deadline = environment_.loop.SteadyNow() + kScanLimit;
  Outcome<std::vector<std::string>> shown = co_await Attempt(scan_(host, port, wants_keys, deadline));
  if (!shown) {
    co_return CheckFailure{
        "silent", fmt::format("does not answer at {} port {}: {}", host, port, shown.error().message())};
  }
  if (wants_keys && !record.host_keys.empty() && !HaveOneInCommon(record.host_keys, *shown)) {
    co_return CheckFailure{"host-keys",
                           fmt::format("shows other host keys than its own at {} port {}", host, port)};
  }
  co_return std::nullopt;
}

Task<std::optional<CheckFailure>> MachineCheck::RunCommand(NodeId id, Node record, std::string line) {
  if (environment_.runner == nullptr) co_return std::nullopt;
  Gate::Pass place = co_await commands_.Enter();
  Outcome<process::Exit> ended = co_await Attempt(environment_.runner->Run(CheckCommand(id, record, line)));
  if (!ended) {
    // That says nothing of the machine.
    if (!std::exchange(is_command_at_fault_, true))
      logger_.Warning("Ready nodes are not checked: {}; correct recheck", ended.error().message());
    co_return std::nullopt;
  }
  is_command_at_fault_ = false;
  if (ended->is_good()) co_return std::nullopt;
  co_return CheckFailure{
      "command", fmt::format("does not stand its check, which ended with {}{}{}", ended->code,
                             ended->is_timed_out ? ", out of time" : "", Excerpt(LastSaid(ended->output)))};
}

namespace {

constexpr int kChecks = 3;
constexpr Duration kBetweenChecks = std::chrono::seconds(5);

std::optional<Duration> ShortestInterval(const ProviderConfig& config) {
  std::optional<Duration> shortest;
  for (const auto& [name, pool] : config.pools) {
    if (!pool->recheck_interval) continue;
    shortest = std::min(*pool->recheck_interval, shortest.value_or(*pool->recheck_interval));
  }
  return shortest;
}

bool IsWayToThem(std::size_t failing, std::size_t checked) { return failing > 1 && failing * 2 > checked; }

}  // namespace

Task<> ReadyChecks::Run() {
  std::optional<Duration> interval = ShortestInterval(config_);
  if (!interval) co_return;
  while (true) {
    co_await environment_.loop.SleepFor(*interval);
    Outcome<> done = co_await Attempt(Round());
    if (!done) logger_.Warning("Ready nodes could not be checked, trying again: {}", done.error().message());
  }
}

Task<> ReadyChecks::Round() {
  std::set<NodeId> due = TakeDue();
  const std::size_t checked = due.size();
  for (int check = 1; check <= kChecks && !due.empty(); ++check) {
    if (check > 1) co_await environment_.loop.SleepFor(kBetweenChecks);
    co_await CheckAll(std::exchange(due, {}));
    for (const auto& [id, failure] : failing_) due.insert(id);
  }
  const std::map<NodeId, CheckFailure> failing = std::exchange(failing_, {});
  bool is_way_doubted = IsWayToThem(failing.size(), checked);
  if (is_way_doubted && !std::exchange(is_way_doubted_, true)) {
    logger_.Warning(
        "{} of {} ready nodes that were checked fail, so none is deleted: is the way to them interrupted? "
        "Node {} {}",
        failing.size(), checked, failing.begin()->first, failing.begin()->second.why);
  }
  if (is_way_doubted) co_return;
  is_way_doubted_ = false;
  for (const auto& [id, failure] : failing) co_await Replace(id, failure);
}

const store::StoredNode* ReadyChecks::FindReady(const NodeId& id) const {
  const store::StoredNode* node = environment_.records.nodes.Find(id);
  bool is_ready =
      node != nullptr && node->record.is_free() && !node->is_locked() && node->record.interface_ip;
  return is_ready ? node : nullptr;
}

std::set<NodeId> ReadyChecks::TakeDue() {
  std::map<NodeId, SteadyTime> before = std::exchange(last_checks_, {});
  std::set<NodeId> due;
  SteadyTime now = environment_.loop.SteadyNow();
  for (const NodeId& id : environment_.records.nodes.OfProvider(config_.name)) {
    const store::StoredNode* node = FindReady(id);
    if (node == nullptr) continue;
    auto pool = config_.pools.find(node->record.pool);
    if (pool == config_.pools.end() || !pool->second->recheck_interval) continue;
    auto last = before.find(id);
    bool is_due = last == before.end() || now - last->second >= *pool->second->recheck_interval;
    last_checks_[id] = is_due ? now : last->second;
    if (is_due) due.insert(id);
  }
  return due;
}

Task<> ReadyChecks::CheckAll(std::set<NodeId> nodes) {
  failing_.clear();
  for (const NodeId& id : nodes) {
    const store::StoredNode* node = FindReady(id);
    if (node == nullptr) continue;
    auto pool = config_.pools.find(node->record.pool);
    if (pool == config_.pools.end()) continue;
    checks_.Spawn("check ready node", log::OfNode(id), Check(id, node->record, pool->second->recheck));
  }
  co_await checks_.Join();
}

Task<> ReadyChecks::Check(NodeId id, Node record, std::string how) {
  std::optional<CheckFailure> failure = co_await check_.Run(id, std::move(record), std::move(how));
  if (failure) failing_[id] = std::move(*failure);
}

Task<> ReadyChecks::Replace(NodeId id, CheckFailure failure) {
  const store::StoredNode* node = FindReady(id);
  if (node == nullptr) co_return;
  const boost::json::value external_id = node->record.external_id;
  bool is_marked =
      co_await DeleteFreeNode(environment_.records.store, id, external_id, environment_.loop.Now());
  if (!is_marked) co_return;
  if (environment_.observer != nullptr) environment_.observer->ReadyNodeFailed(config_.name, failure.reason);
  logger_.About(log::OfNode(id)).Warning("The ready node {}: it is deleted", failure.why);
}

}  // namespace nodepool::driver::cloud
