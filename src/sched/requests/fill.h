#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "model/node.h"
#include "model/node_request.h"
#include "sched/breakers/breaker.h"

namespace nodepool::sched {

// The order in which requests are served (launcher.md 8, step 5): precedence as text, then relative
// priority as a number, then age.
struct ServiceOrder {
  std::string precedence;
  double relative_priority = 0;
  std::uint64_t age = 0;  // the smaller, the older
  std::string sequence;
  auto operator<=>(const ServiceOrder&) const = default;
};

// nullopt for an id that ParseRequestId refuses.
std::optional<ServiceOrder> OrderOf(const RequestId& id, const NodeRequest& request);

struct LabelView {
  Resources need;  // of one node
  bool is_image_ready = true;
  bool is_broken = false;                        // the driver said that it can never work
  bool is_unknown = false;                       // the driver could not say whether it works (D-26)
  const std::set<NodeId>* free_nodes = nullptr;  // ready, unallocated, not claimed; null: none
  NodeId taken_up_to;                            // none of `free_nodes` up to this one is left
  Standing standing = Standing::kClosed;         // of its breaker in this pool
  bool operator==(const LabelView&) const = default;
};

// A limited amount of resources and the part in use, counting launches that have been decided but
// have no record yet.
struct Budget {
  Resources limit;   // absent: unlimited
  Resources others;  // what others use of the cloud's limits; `limit` is smaller by it
  Resources used;
  // Resources that an earlier request waits for: later requests may not use them (D-33).
  std::set<std::string> reserved;
  bool operator==(const Budget&) const = default;
};

// What a cloud has refused although it seemed to fit (launcher.md 15.3).
struct Refused {
  std::set<std::string> resources;  // all that can be short
  std::set<LabelName> labels;       // of launches for which no resource was named
  bool empty() const { return resources.empty() && labels.empty(); }
  bool operator==(const Refused&) const = default;
};

// A pool of this launcher.
struct PoolView {
  PoolKey key;
  LauncherId launcher;
  int priority = 100;
  bool is_disabled = false;
  std::optional<std::string> paused_by;  // who paused the provider, and why; nullopt: it is not paused
  bool launches_nodes = true;
  std::string provider_fault;     // why the provider cannot be used now; empty: it can
  bool is_provider_away = false;  // nothing can be launched because of it
  // The limit of `provider` does not count, and requests do not queue behind others for it, unless
  // the cloud refused recently; then capacity is handed out in order.
  bool ignores_provider_quota = false;
  bool is_cloud_full = false;
  // Of the cloud only the limits themselves decline a request: it waits for what others use.
  bool waits_for_others = false;
  std::map<LabelName, LabelView> labels;
  Budget pool;
  Budget provider;  // shared by the provider's pools
  // Labels that the provider has refused to an earlier request, which waits to try again.
  std::set<LabelName> refused_labels;
  // Some accepted request of this pool waits for capacity, other than for labels that were refused.
  bool is_waiting = false;
  int max_concurrency = 0;  // ≤ 0: unlimited (D-20)
  // Of the provider, including those that only wait for their turn.
  int launches_in_progress = 0;
  bool operator==(const PoolView&) const = default;
};

// The limits of `provider` that a request must fit to be accepted (launcher.md 9.2).
Resources DecliningLimit(const PoolView& pool);

// How a pool provides the labels that a request still needs.
struct FillPlan {
  struct Reuse {
    LabelName label;
    NodeId node;
  };
  std::vector<Reuse> reuse;
  std::vector<LabelName> launch;
  std::vector<LabelName> wait;  // not available now
  // Those of `wait` that lack no capacity but wait for their turn under max-concurrency (D-20).
  int turns_awaited = 0;
  // What the first of `wait` that lacks capacity lacks, in the pool and in the provider.
  Resources pool_shortage;
  Resources provider_shortage;
  // What the cloud has refused to this request, or the labels of `wait` that it has refused to an earlier
  // one.
  Refused refused;
  // The cloud has refused a launch of this request that seemed to fit; the next one may be refused again.
  bool is_refused = false;
  Resources may_be_short;  // then: as much of each resource may be missing as this
  // Resources that are being freed for this request: nobody else takes them meanwhile.
  std::set<std::string> kept;
  bool misses_capacity() const { return is_refused || static_cast<int>(wait.size()) > turns_awaited; }
  // Whether it misses nothing but labels that were refused, which concerns no other label.
  bool misses_only_labels() const {
    return !refused.labels.empty() && pool_shortage.empty() && provider_shortage.empty() && kept.empty();
  }
  // What is missing, for operators: a resource, or a label that was refused; empty: nothing.
  std::string Missing() const;
};

// Labels needed besides those already satisfied, grouped by label in order of first
// appearance (launcher.md 10.2).
std::vector<LabelName> MissingLabels(const std::vector<LabelName>& wanted,
                                     const std::vector<LabelName>& satisfied);

// Plans the `missing` labels: ready nodes first if `reuse` (the oldest that is not in `excluded`),
// then launches within the budgets and max-concurrency; the rest waits. A label after one that
// waits is still planned, as long as it uses nothing that the waiting one needs.
FillPlan PlanFill(const PoolView& pool, const std::vector<LabelName>& missing, bool reuse,
                  const std::set<NodeId>& excluded = {});

// A limit that a request does not fit into now, with the figures. Amounts as in node.h.
struct Shortfall {
  enum class Limit { kPool, kProvider, kTenant };
  Limit of = Limit::kPool;
  std::string resource;
  double used = 0;
  double limit = 0;
  double needed = 0;  // by the request, or by those of its nodes that have to wait
  double others = 0;  // of a provider: what others use of the cloud's quota, beside `used` and `limit`

  // It would fit, but what is free is kept for an earlier request.
  bool is_reserved() const { return used + needed <= limit; }
  bool operator==(const Shortfall&) const = default;
};

// What a plan that misses capacity lacks first, in the pool or else in the provider; nullopt: no limit is
// reached.
std::optional<Shortfall> ShortfallOf(const PoolView& pool, const FillPlan& plan);

// A ready, unallocated, unlocked node that might be deleted for a waiting request.
struct UnusedNode {
  NodeId id;
  bool is_wanted = false;         // another request waits for a label of it
  bool is_of_other_pool = false;  // of the same provider
  WallTime ready_since{};
  Resources resources;
};

// Which unused nodes to delete so that a waiting request gets the missing capacity, only as many as
// needed: unwanted ones before wanted ones, then those of its own pool before others, then the
// oldest (D-22). Empty when even all of them are not enough.
std::vector<NodeId> ChooseVictims(std::vector<UnusedNode> unused, const Resources& shortage);

// The same where it is not known how much is missing: the first `count`, or all, that have any of the
// resources.
std::vector<NodeId> ChooseSome(std::vector<UnusedNode> unused, const Resources& needed, std::size_t count);

// What a waiting request has got so far.
struct Progress {
  std::ptrdiff_t ready = 0;  // its ready nodes
  SteadyTime since{};        // when their number changed last
  bool is_launching = false;
};

// Whether a waiting request gives its nodes back.
struct GiveWay {
  bool is_due = false;
  std::optional<SteadyTime> ask_at;  // when to ask again, even if nothing changes
};

// An earlier request, perhaps of another launcher, may wait for capacity that the nodes of this one use. The
// later request gives way if it holds nodes and has waited in vain for as long as `yield_after`
// (launcher.md 12.2). `is_earlier_held_up` is called only where the answer depends on it.
GiveWay DecideGiveWay(const FillPlan& plan, const Progress& progress, Duration yield_after, SteadyTime now,
                      const std::function<bool()>& is_earlier_held_up);

}  // namespace nodepool::sched
