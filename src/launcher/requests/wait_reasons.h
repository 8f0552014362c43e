#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log/logging.h"
#include "driver/provider_config.h"
#include "sched/requests/assigner.h"
#include "sched/requests/question.h"
#include "sched/requests/reason.h"

namespace nodepool::launcher {

// What a pool is, for the words about its decisions.
struct PoolFacts {
  const sched::PoolView& view;
  const driver::PoolConfig& config;
  const std::map<LabelName, std::string>& faults;  // why labels cannot be launched
};

// The setting that limits the resource in a pool or for a tenant: "max-servers".
std::string SettingOf(const std::string& resource);

// Why the pool declines the request, in words and with the names and amounts involved: "it has no label smal;
// did you mean small?", "6 instances needed, the pool's max-servers is 5".
std::string DeclineText(const PoolFacts& pool, const NodeRequest& request, const sched::Decision& decision);

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

// Logs why requests wait: one line per shape of request when the deciding reason changes, not per request or
// decision, and at most one line per shape in ten seconds. Thousands of shapes at a time are counted, not
// named.
class WaitLog {
 public:
  explicit WaitLog(log::Logger logger) : logger_(std::move(logger)) {}

  // What every pool said about requests of the shape, which wait; null: none waits.
  using AnswersOf = std::function<const sched::Answers*(const sched::Shape&)>;

  // Call after each decision. `changes` are the shapes that began or ceased to wait, or wait for other
  // reasons, since the last call.
  void Report(const std::set<sched::Shape>& changes, const AnswersOf& answers_of, const sched::Queues& queues,
              SteadyTime now);

 private:
  using Decides = std::optional<std::pair<PoolKey, sched::Reason>>;
  struct Logged {
    Decides decides;  // as it was logged
    Decides now;      // as it is
    SteadyTime when{};
  };

  void Follow(const sched::Shape& shape, const sched::Answers* answers);
  void RemoveOld(SteadyTime now);
  void Log(const sched::Shape& shape, const sched::Answers& answers, const sched::Queues& queues);
  void CountUnnamed(SteadyTime now);
  static Decides DecidingOf(const sched::Answers& answers);

  log::Logger logger_;
  std::map<sched::Shape, Logged> logged_;
  std::set<std::pair<SteadyTime, sched::Shape>> idle_;  // those of `logged_` that do not wait, by their time
  std::set<sched::Shape> changed_;                      // those of `logged_` that wait for another reason now
  std::set<sched::Shape> unnamed_;                      // those that wait and are not in `logged_`
  std::optional<SteadyTime> counted_;                   // when shapes were last counted instead
};

}  // namespace nodepool::launcher
