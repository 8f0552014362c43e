#pragma once

#include <vector>

#include "base/metrics.h"

namespace nodepool::runners {

// What nodepool-runners measures (runners.md 10).

inline constexpr metrics::Metric kRunnersGauge{
    metrics::Kind::kGauge, "nodepool.runners.{service}.{set}.{state}", "nodepool_runners",
    "Runs of a set by their state: wanted, node, registered, started, online, job, ending."};
inline constexpr metrics::Metric kJobsCounter{
    metrics::Kind::kCounter, "nodepool.runners.{service}.{set}.jobs.{result}", "nodepool_runner_jobs_total",
    "Jobs that ended on runners of a set, by the service's result."};
inline constexpr metrics::Metric kStartTiming{
    metrics::Kind::kTiming, "nodepool.runners.{service}.{set}.start", "nodepool_runner_start_seconds",
    "From the moment when a runner is wanted until it is online."};
inline constexpr metrics::Metric kNodeTiming{metrics::Kind::kTiming, "nodepool.runners.{service}.{set}.node",
                                             "nodepool_runner_node_seconds",
                                             "From the moment when a runner is wanted until it has a node."};
inline constexpr metrics::Metric kFirstStepTiming{metrics::Kind::kTiming,
                                                  "nodepool.runners.{service}.{set}.first_step",
                                                  "nodepool_runner_first_step_seconds",
                                                  "From the moment when the set gets a job until the job's "
                                                  "first step, where the service says when that was."};
inline constexpr metrics::Metric kWaitTiming{metrics::Kind::kTiming, "nodepool.runners.{service}.{set}.wait",
                                             "nodepool_runner_wait_seconds",
                                             "From a job's entry into the service's queue until it starts."};
inline constexpr metrics::Metric kCallsCounter{
    metrics::Kind::kCounter, "nodepool.runners.{service}.calls.{call}.{result}",
    "nodepool_runner_calls_total", "Calls of a service by kind and status; error: no answer."};
inline constexpr metrics::Metric kSessionGauge{
    metrics::Kind::kGauge, "nodepool.runners.{service}.{set}.session", "nodepool_runner_session",
    "1 while this process has the session of a set."};
inline constexpr metrics::Metric kWaitingGauge{
    metrics::Kind::kGauge, "nodepool.runners.{service}.{set}.waiting", "nodepool_runner_waiting_jobs",
    "Jobs of a set without a runner."};
inline constexpr metrics::Metric kCapacityGauge{
    metrics::Kind::kGauge, "nodepool.runners.{service}.{set}.capacity", "nodepool_runner_capacity",
    "Runners that the service may count on."};
inline constexpr metrics::Metric kPhantomsGauge{
    metrics::Kind::kGauge, "nodepool.runners.{service}.{set}.phantoms", "nodepool_runner_phantom_jobs",
    "Jobs that a service counts and that never came."};
inline constexpr metrics::Metric kLostCounter{
    metrics::Kind::kCounter, "nodepool.runners.{service}.{set}.lost.{reason~}", "nodepool_runner_lost_total",
    "Runs that ended otherwise than with their runner's process."};

inline constexpr metrics::Metric kVersionAgeGauge{
    metrics::Kind::kGauge, "nodepool.runners.{service}.{set}.version_age_days",
    "nodepool_runners_version_age_days",
    "Days since a newer version of the runner was seen than that on the nodes; 0: they have the newest."};

inline std::vector<const metrics::Metric*> AllMetrics() {
  return {&kRunnersGauge,  &kJobsCounter,  &kStartTiming,    &kNodeTiming,   &kFirstStepTiming,
          &kWaitTiming,    &kCallsCounter, &kSessionGauge,   &kWaitingGauge, &kCapacityGauge,
          &kPhantomsGauge, &kLostCounter,  &kVersionAgeGauge};
}

}  // namespace nodepool::runners
