#pragma once

#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "model/node_request.h"
#include "model/resources.h"
#include "sched/requests/fill.h"
#include "sched/requests/order.h"
#include "sched/requests/queues.h"
#include "sched/requests/reason.h"
#include "sched/requests/shortfall.h"

// Which pool takes which request. Pure: all input of a decision is in the arguments, and the result
// says why.
namespace nodepool::sched {

// A pool of any launcher, as its component record announces it.
struct RegisteredPool {
  LauncherId id;
  ProviderName provider;
  std::int64_t priority = 100;
  bool is_paused = false;
  std::set<LabelName> labels;
  PoolName name = {};                      // empty in announcements of old versions
  bool is_failing = false;                 // its launcher announces that it cannot use the provider
  bool is_provider_paused = false;         // by an operator
  bool heeds_breakers = true;              // not those of the Python implementation
  std::set<LabelName> broken_labels = {};  // those of `labels` whose breaker is open (breaker.md 3)
};

// All registered pools; a query needs no scan per request.
class Registry {
 public:
  explicit Registry(std::vector<RegisteredPool> pools = {});
  const std::vector<RegisteredPool>& pools() const { return pools_; }
  // Positions in `pools` of those that are paused.
  const std::vector<std::size_t>& paused() const { return paused_; }
  bool Contains(const LauncherId& id) const;

  // Pools that offer every label of the request and have not declined it.
  std::vector<const RegisteredPool*> Candidates(const NodeRequest& request) const;
  // Whether every pool has declined. False when no pool is registered: an empty view proves nothing
  // (launcher.md 9.3).
  bool AllDeclined(const NodeRequest& request) const;

 private:
  std::vector<RegisteredPool> pools_;
  std::vector<std::size_t> paused_;
  std::map<LabelName, std::vector<std::size_t>> by_label_;  // positions in order
};

struct TenantView {
  Resources limit;  // absent: unlimited
  Resources used;   // by all nodes of the tenant, anywhere
};

struct Decision {
  enum class Kind { kAccept, kDecline, kDefer };
  Kind kind = Kind::kDefer;
  Reason reason = Reason::kNone;
  std::string detail;                       // the label, pool, tenant or resource concerned; may be empty
  bool must_wait = false;                   // accepted, but a part of it has to wait for capacity
  std::optional<Shortfall> shortfall = {};  // the limit concerned
  // Of an accepted request for which nodes are launched: not closed, it is the probe of a breaker, or is
  // tried although one is open, since no other pool can serve it.
  Standing standing = Standing::kClosed;
};

// One pool's decision about one request (launcher.md 8, 9.2; D-33). `tenant` is null when the
// request's tenant has no limits.
Decision Consider(const PoolView& pool, const Registry& registry, const TenantView* tenant,
                  const NodeRequest& request);

// The part of it that does not depend on current usage: kDecline with the reason, kDefer when the
// driver cannot say, or kAccept. Evaluated again while a request waits, since limits may have
// changed.
Decision DeclineReason(const PoolView& pool, const NodeRequest& request);

// Whether a breaker bars the request's launches in the pool, and another pool can serve it (breaker.md 3):
// one that offers its labels, has not declined it, can be used and has no open breaker for them.
bool IsLeftByBreaker(const PoolView& pool, const Registry& registry, const NodeRequest& request);

// Whether it is left to another pool although the breaker may be probed: then a launch is tried that no
// request waits for.
bool IsProbeWanted(const PoolView& pool, const Registry& registry, const NodeRequest& request);

struct Snapshot {
  std::vector<PoolView> pools;  // of this launcher
  const Registry* registry = nullptr;
  std::map<std::string, TenantView> tenants;  // those with limits
  const Queues* queues = nullptr;
};

using Answers = std::vector<std::pair<PoolKey, Decision>>;

struct Plan {
  struct Acceptance {
    RequestId request;
    PoolKey pool;
    Standing standing = Standing::kClosed;  // as of Decision
  };
  struct Declination {
    RequestId request;
    Answers by;  // the declining pools; empty when all registered pools have declined
                 // already and the request only has to be failed (D-23)
  };
  std::vector<Acceptance> accept;
  std::vector<Declination> decline;
  // For each shape whose requests continue to wait: the answers of all pools.
  std::map<Shape, Answers> waiting;
  // Present if the portion ended before the queues did: where the next one begins.
  std::optional<ServiceOrder> continues_after = {};
};

// The part of the waiting requests that one plan considers. A plan for thousands of shapes takes longer
// than the launcher's other work can wait.
struct Portion {
  // Shapes whose first request is not behind this place have been considered; absent: none has.
  std::optional<ServiceOrder> after = {};
  // The portion ends when this is reached. A unit takes less than 1 µs: each request counts ten, and each
  // pool that is asked about it one, and another for every eight labels and decliners.
  std::size_t max_effort = std::numeric_limits<std::size_t>::max();
};

// What to do with the waiting requests. They are considered in service order; capacity that an
// accepted request takes is no longer available to the next. A portion has at least one request, if there
// is one.
Plan Assign(Snapshot snapshot, const Portion& portion = {});

}  // namespace nodepool::sched
