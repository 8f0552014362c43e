#include "launcher/requests/wait_log.h"

#include <algorithm>

#include "launcher/requests/wait_reasons.h"

namespace nodepool::launcher {
namespace {

using Decides = std::optional<std::pair<PoolKey, sched::Reason>>;

constexpr Duration kQuiet = std::chrono::seconds(10);
// A shape that waits now and then is logged at most once in this time, if nothing changed.
constexpr Duration kRemembered = std::chrono::minutes(5);
constexpr std::size_t kMaxShapes = 1000;

std::string LineOf(const sched::Shape& shape, std::size_t count, const sched::Answers& answers) {
  std::vector<sched::RequestReason> reasons;
  for (const auto& [pool, decision] : answers) reasons.push_back(Sentence(ReasonOf(pool, decision)));
  const sched::RequestReason* decides = sched::DecidingReason(reasons);
  std::string tenant = shape.tenant_name ? " of tenant " + *shape.tenant_name : "";
  std::string others = count > 1 ? fmt::format(" (and {} more like it)", count - 1) : "";
  return fmt::format("The request for {}{}{} waits: {}", fmt::join(shape.node_types, ","), tenant, others,
                     decides == nullptr ? "no pool of this launcher runs" : decides->text);
}

// What the line depends on, without its figures.
Decides DecidingOf(const sched::Answers& answers) {
  auto rank = [](const auto& answer) { return sched::RankOf(sched::CodeOf(answer.second.reason)); };
  auto first = std::ranges::min_element(answers, {}, rank);
  if (first == answers.end()) return std::nullopt;
  return std::pair(first->first, first->second.reason);
}

}  // namespace

void WaitLog::Report(const std::map<sched::Shape, sched::Answers>& waiting, const sched::Queues& queues,
                     SteadyTime now) {
  std::erase_if(logged_, [&](const auto& logged) {
    return !waiting.contains(logged.first) && now - logged.second.when >= kRemembered;
  });
  std::size_t unnamed = 0;
  for (const auto& [shape, answers] : waiting) {
    auto logged = logged_.find(shape);
    bool is_new = logged == logged_.end();
    if (is_new && logged_.size() >= kMaxShapes) {
      ++unnamed;
      continue;
    }
    if (is_new) logged = logged_.emplace(shape, Logged()).first;
    Decides decides = DecidingOf(answers);
    bool is_changed = logged->second.decides != decides && now - logged->second.when >= kQuiet;
    if (!is_new && !is_changed) continue;
    logged->second = {std::move(decides), now};
    auto queue = queues.shapes().find(shape);
    if (queue == queues.shapes().end()) continue;
    const sched::Waiting& first = queue->second.begin()->second;
    logger_.About({first.request->event_id.value_or(""), first.id.value, ""})
        .Info("{}", LineOf(shape, queue->second.size(), answers));
  }
  if (unnamed == 0 || (counted_ && now - *counted_ < kRemembered)) return;
  counted_ = now;
  logger_.Warning(
      "Requests of {} more kinds wait, too many to log why each does; `nodepool request-list --detail` shows "
      "it",
      unnamed);
}

}  // namespace nodepool::launcher
