#include "sched/runners/demand.h"

#include <fmt/format.h>

#include <algorithm>

namespace nodepool::sched {
namespace {

// The larger of both: the service's figures are 0 while its messages name jobs, and messages may be lost.
std::int64_t WaitingJobs(const RunnerCounts& counts) {
  std::int64_t counted = counts.statistics ? counts.statistics->assigned - counts.statistics->running : 0;
  return std::max<std::int64_t>(0, std::max(counted - counts.phantoms, counts.known_jobs));
}

std::int64_t CapacityTold(const RunnerCounts& counts, const RunnerLimits& limits) {
  std::int64_t with_node = counts.starting + counts.online + counts.busy;
  if (limits.is_draining) return counts.busy;
  if (limits.lacks_nodes) return std::min(with_node, limits.max_runners);
  std::int64_t all = with_node + counts.wanted;
  if (!limits.left_of_service) return limits.max_runners;
  return std::min(limits.max_runners, all + std::max<std::int64_t>(0, *limits.left_of_service));
}

}  // namespace

RunnerDemand DecideDemand(const RunnerCounts& counts, const RunnerLimits& limits) {
  RunnerDemand demand;
  demand.waiting = WaitingJobs(counts);
  demand.capacity = CapacityTold(counts, limits);
  std::int64_t free = counts.wanted + counts.starting + counts.online;
  std::int64_t needed = limits.is_draining ? 0 : demand.waiting + limits.idle;
  demand.surplus = std::max<std::int64_t>(0, free - needed);
  if (limits.is_draining || !limits.may_start) return demand;
  std::int64_t room = limits.max_runners - free - counts.busy;
  if (limits.left_of_service) room = std::min(room, *limits.left_of_service);
  demand.start = std::clamp<std::int64_t>(needed - free, 0, std::max<std::int64_t>(0, room));
  return demand;
}

std::string WhyJobsWait(const RunnerCounts& counts, const RunnerLimits& limits, const RunnerDemand& demand,
                        std::int64_t deferred) {
  if (demand.waiting + deferred <= 0) return "";
  if (limits.is_draining) return "the set is not configured any more, so nothing new is started";
  if (!limits.may_start) return "new runners are held back: see the fault of the set";
  std::int64_t on_the_way = counts.wanted + counts.starting + counts.online;
  bool are_enough = on_the_way + demand.start >= demand.waiting;
  bool is_full = counts.busy + on_the_way + demand.start >= limits.max_runners;
  if (!are_enough && is_full)
    return fmt::format("max-runners of the set, {}, is reached", limits.max_runners);
  if (!are_enough) return "max-runners of the service is reached";
  if (demand.waiting == 0)
    return fmt::format("max-per-repo is reached by the repositories of {} jobs", deferred);
  if (counts.wanted + demand.start > 0)
    return fmt::format("{} of their nodes are requested", counts.wanted + demand.start);
  return fmt::format("{} runners start, {} are online", counts.starting, counts.online);
}

std::int64_t PhantomsLeft(std::int64_t phantoms, const JobStatistics& statistics) {
  return statistics.assigned - statistics.running < phantoms ? 0 : phantoms;
}

}  // namespace nodepool::sched
