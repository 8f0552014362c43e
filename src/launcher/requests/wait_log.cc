#include "launcher/requests/wait_log.h"

#include "base/text.h"
#include "launcher/requests/wait_reasons.h"

namespace nodepool::launcher {
namespace {

constexpr Duration kQuiet = std::chrono::seconds(10);
// A shape that waits now and then is told of once in this time, if nothing changed.
constexpr Duration kRemembered = std::chrono::minutes(5);
constexpr std::size_t kMostPools = 8;

std::string Sentence(const sched::Shape& shape, std::size_t count, const sched::Answers& answers) {
  std::vector<std::string> parts;
  for (const auto& [pool, decision] : answers) {
    if (parts.size() == kMostPools) {
      parts.push_back(fmt::format("and {} more pools", answers.size() - kMostPools));
      break;
    }
    parts.push_back(
        fmt::format("pool {} of provider {}: {}", pool.pool, pool.provider, ReasonOf(pool, decision).text));
  }
  std::string tenant = shape.tenant_name ? " of tenant " + *shape.tenant_name : "";
  std::string others = count > 1 ? fmt::format(" (and {} more like it)", count - 1) : "";
  return fmt::format("The request for {}{}{} waits; {}", fmt::join(shape.node_types, ","), tenant, others,
                     parts.empty() ? "no pool of this launcher runs" : Join(parts, "; "));
}

}  // namespace

void WaitLog::Tell(const std::map<sched::Shape, sched::Answers>& waiting, const sched::Queues& queues,
                   SteadyTime now) {
  std::erase_if(told_, [&](const auto& told) {
    return !waiting.contains(told.first) && now - told.second.when >= kRemembered;
  });
  for (const auto& [shape, answers] : waiting) {
    Reasons reasons;
    for (const auto& [pool, decision] : answers) reasons.emplace_back(pool, decision.reason);
    auto [told, is_new] = told_.try_emplace(shape);
    bool is_changed = told->second.reasons != reasons && now - told->second.when >= kQuiet;
    if (!is_new && !is_changed) continue;
    told->second = {std::move(reasons), now};
    auto queue = queues.shapes().find(shape);
    if (queue == queues.shapes().end()) continue;
    const sched::Waiting& first = queue->second.begin()->second;
    logger_.About({first.request->event_id.value_or(""), first.id.value, ""})
        .Info("{}", Sentence(shape, queue->second.size(), answers));
  }
}

}  // namespace nodepool::launcher
