#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sched/requests/deciding_reason.h"
#include "sched/requests/question.h"

namespace nodepool::launcher {

// Why a pool does not serve a request now; for the log, the command line and the web.
struct WaitReason {
  PoolKey pool;
  std::string code;  // for programs: "tenant-limit", "capacity" ...; stable
  std::string text;  // for operators, what is said of the pool: "uses 2 of 2 instances"
  // For an accepted request that waits for capacity: what it waits for.
  std::vector<LabelName> labels;
  Resources pool_shortage;
  Resources provider_shortage;
  bool operator==(const WaitReason&) const = default;
};

// From a pool's decision about a request that is not accepted yet.
WaitReason ReasonOf(const PoolKey& pool, const sched::Decision& decision);
// What an accepted request lacks in its pool.
WaitReason ReasonOf(const sched::PoolView& pool, const sched::FillPlan& plan);
// That nothing can be launched in the pool; without a fault the provider is being started.
WaitReason UnusableProvider(const PoolKey& pool, const std::string& fault);

// The reason as a sentence of its own.
sched::RequestReason Sentence(const WaitReason& reason);

// A request as this launcher sees it.
struct RequestStatus {
  RequestId id;
  const NodeRequest* record = nullptr;  // the cache's
  std::optional<PoolKey> accepted_by;   // the pool of this launcher that works on it
  std::vector<WaitReason> waits;        // empty: it waits for nothing of this launcher
  bool is_deleted = false;              // it failed, and its client has deleted it since
  // The one that decides, of this launcher's and of those that others report.
  std::optional<sched::RequestReason> reason = {};
};

// A request's reason, without what the record says.
struct ReportedReason {
  RequestId id;
  sched::RequestReason reason;
};

}  // namespace nodepool::launcher
