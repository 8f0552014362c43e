#include "launcher/requests/wait_log.h"

#include <algorithm>

#include "launcher/requests/wait_reasons.h"

namespace nodepool::launcher {
namespace {

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

}  // namespace

// What the line depends on, without its figures.
WaitLog::Decides WaitLog::DecidingOf(const sched::Answers& answers) {
  auto rank = [](const auto& answer) { return sched::RankOf(sched::CodeOf(answer.second.reason)); };
  auto first = std::ranges::min_element(answers, {}, rank);
  if (first == answers.end()) return std::nullopt;
  return std::pair(first->first, first->second.reason);
}

void WaitLog::Report(const std::set<sched::Shape>& changes, const AnswersOf& answers_of,
                     const sched::Queues& queues, SteadyTime now) {
  for (const sched::Shape& shape : changes) Follow(shape, answers_of(shape));
  RemoveOld(now);
  std::erase_if(changed_, [&](const sched::Shape& shape) {
    Logged& logged = logged_.at(shape);
    if (now - logged.when < kQuiet) return false;
    logged.decides = logged.now;
    logged.when = now;
    Log(shape, *answers_of(shape), queues);
    return true;
  });
  while (!unnamed_.empty() && logged_.size() < kMaxShapes) {
    sched::Shape shape = std::move(unnamed_.extract(unnamed_.begin()).value());
    const sched::Answers& answers = *answers_of(shape);
    Decides decides = DecidingOf(answers);
    logged_.emplace(shape, Logged{decides, decides, now});
    Log(shape, answers, queues);
  }
  CountUnnamed(now);
}

void WaitLog::Follow(const sched::Shape& shape, const sched::Answers* answers) {
  auto logged = logged_.find(shape);
  if (logged == logged_.end()) {
    if (answers != nullptr) {
      unnamed_.insert(shape);
    } else {
      unnamed_.erase(shape);
    }
    return;
  }
  if (answers == nullptr) {
    changed_.erase(shape);
    idle_.emplace(logged->second.when, shape);
    return;
  }
  idle_.erase({logged->second.when, shape});
  logged->second.now = DecidingOf(*answers);
  if (logged->second.now != logged->second.decides) {
    changed_.insert(shape);
  } else {
    changed_.erase(shape);
  }
}

void WaitLog::RemoveOld(SteadyTime now) {
  while (!idle_.empty() && now - idle_.begin()->first >= kRemembered) {
    logged_.erase(idle_.begin()->second);
    idle_.erase(idle_.begin());
  }
}

void WaitLog::Log(const sched::Shape& shape, const sched::Answers& answers, const sched::Queues& queues) {
  auto line = queues.shapes().find(shape);
  if (line == queues.shapes().end()) return;
  const sched::Queue& queue = line->second.requests;
  const sched::Waiting& first = queue.begin()->second;
  logger_.About({first.request->event_id.value_or(""), first.id.value, ""})
      .Info("{}", LineOf(shape, queue.size(), answers));
}

void WaitLog::CountUnnamed(SteadyTime now) {
  if (unnamed_.empty() || (counted_ && now - *counted_ < kRemembered)) return;
  counted_ = now;
  logger_.Warning(
      "Requests of {} more kinds wait, too many to log why each does; `nodepool request-list --detail` shows "
      "it",
      unnamed_.size());
}

}  // namespace nodepool::launcher
