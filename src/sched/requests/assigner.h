#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "model/node_request.h"
#include "sched/requests/fill.h"
#include "sched/requests/question.h"

namespace nodepool::sched {

// Everything about a request that a pool's decision depends on. Requests of one shape get the same
// decision at the same moment, so only the first of them is evaluated; this makes the work per
// event independent of the number of waiting requests.
struct Shape {
  std::vector<LabelName> node_types;
  bool reuse = true;
  bool is_min_ready = false;
  std::optional<std::string> tenant_name;
  ProviderName provider;
  std::vector<LauncherId> declined_by;
  auto operator<=>(const Shape&) const = default;
};

Shape ShapeOf(const NodeRequest& request);

// The record belongs to the request cache.
struct Waiting {
  RequestId id;
  const NodeRequest* request = nullptr;
};
// The waiting requests of one shape in service order.
using Queue = std::map<ServiceOrder, Waiting>;

// The waiting requests of one shape, and what an Assigner knows about all of them.
struct Line {
  std::uint64_t number = 0;  // of all lines that ever were
  const Shape* shape = nullptr;
  Queue requests;                // never empty
  bool is_waiting = false;       // all pools have been asked, and let the requests wait: `answers` count
  bool is_stale = true;          // all pools have to be asked
  std::set<std::size_t> stale;   // otherwise those at these positions have to
  std::optional<Offers> offers;  // absent: not found yet
  Answers answers;               // of all pools, in their order
  std::size_t faults = 0;        // answers that name a fault of a driver or provider
};

// All requests in state `requested`, by shape. O(log n) per change.
class Queues {
 public:
  using Shapes = std::map<Shape, Line>;
  using Lines = std::map<std::uint64_t, Line*>;  // by their numbers

  Queues() = default;
  Queues(const Queues&) = delete;  // lines are known by their addresses
  Queues(Queues&&) = default;
  Queues& operator=(Queues&&) = default;

  // Adds a request, or replaces its former version. Requests that are not waiting, or whose id has
  // no place in the order, are not stored. `request` stays valid until the next Put or Remove of
  // the same id.
  void Put(const RequestId& id, const NodeRequest& request);
  void Remove(const RequestId& id);

  const Shapes& shapes() const { return shapes_; }
  std::size_t size() const { return places_.size(); }
  // The answers of all pools about the requests of the shape, which wait; null: none waits, or none was
  // considered.
  const Answers* WaitingOf(const Shape& shape) const;
  // The shapes that began or ceased to wait, or wait for other reasons, since the last call.
  std::set<Shape> TakeChanges() { return std::exchange(changes_, {}); }
  // Whether a request waits because a driver cannot answer, or a provider cannot be used.
  bool IsProviderAtFault() const { return !at_fault_.empty(); }

  // For the Assigner: the lines about whose requests a pool has to be asked, by their first request.
  const std::map<ServiceOrder, Line*>& due() const { return due_; }
  void SetDue(Line& line) { due_.emplace(line.requests.begin()->first, &line); }
  // All pools let the requests wait, as is known of them.
  void Wait(Line& line);
  // They wait for other reasons than before.
  void NoteChange(const Line& line) { changes_.insert(*line.shape); }
  // Those whose first label is this one; empty: also those that ask for no label.
  const Lines& WithFirstLabel(const LabelName& label) const;
  const Lines& OfTenant(const std::string& tenant) const;
  void ForEach(auto visit) {
    for (auto& [shape, line] : shapes_) visit(line);
  }

 private:
  struct Place {
    Shapes::iterator line;
    ServiceOrder order;
  };
  Shapes::iterator Enter(Shape shape);
  void Leave(Shapes::iterator line);
  void Insert(Line& line, const ServiceOrder& order);
  void Take(const Place& place);

  Shapes shapes_;
  std::unordered_map<RequestId, Place> places_;
  std::map<ServiceOrder, Line*> due_;
  std::map<LabelName, Lines> by_first_label_;
  std::map<std::string, Lines> by_tenant_;
  Lines at_fault_;
  std::set<Shape> changes_;
  std::uint64_t last_number_ = 0;
};

// The labels for which a waiting request would take a free node.
std::set<LabelName> LabelsToReuse(const Queues& queues);

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

// Decides which pool takes which request, again and again (launcher.md 8). What pools have answered about
// requests that wait is kept with their queues, and asked again only when something that it depends on has
// changed, so that the plan is always that of an Assigner which knows nothing yet. By what an answer depends
// on:
//
//   on the registry alone                   the pool leaves the request to others
//   also on the tenant and what is offered  the tenant is at its limit
//   also on what is used and awaited        all other reasons to wait
//
// Before each decision it is given all that has changed, in any order. What it decided itself counts until
// then: after an acceptance the views of the provider's pools and of the request's tenant have to be given
// anew, and accepted and declined requests be removed from the queues.
class Assigner {
 public:
  // Both outlive it; only one Assigner decides about the queues.
  Assigner(Queues& queues, const Registry& registry) : queues_(queues), registry_(registry) {}

  // The registered pools were as `before`.
  void RegistryChanged(const Registry& before);
  // All pools of this launcher, in the order in which they are asked. Nothing is known of others any more.
  void SetPools(std::vector<PoolView> pools);
  // The pool of this position is like this now. `has_other_nodes`: where it has free nodes, they may be
  // others than before.
  void SetPool(std::size_t position, PoolView pool, bool has_other_nodes);
  // Those with limits. Tenants not named have none.
  void SetTenants(std::map<std::string, TenantView> tenants);

  // What to do with the waiting requests. They are considered in service order; capacity that an accepted
  // request takes is no longer available to the next. A portion has at least one request, if a pool has to be
  // asked about one.
  Plan Decide(const Portion& portion = {});

  // How often a pool was asked about a request.
  std::uint64_t question_count() const { return question_count_; }
  const std::vector<PoolView>& pools() const { return pools_; }

 private:
  struct Outcome;

  void MakeStale(Line& line);
  void MakeStale(Line& line, std::size_t position);
  void RegisteredPoolChanged(const RegisteredPool& before, const RegisteredPool& after);
  void PoolChanged(std::size_t position, bool is_offer_changed);
  void TenantChanged(const std::string& tenant);

  bool DecideAbout(Line& line, const Waiting& waiting, Plan& plan);
  Outcome AskPools(Line& line, const NodeRequest& request);
  void Record(Line& line, std::size_t position, Decision decision);
  void Wait(Line& line, Answers deferrals);
  const TenantView* TenantOf(const NodeRequest& request) const;

  void Book(std::size_t taker, const NodeRequest& request);
  void BookInProvider(const ProviderName& provider, const Resources& launched, int launches,
                      const Resources& awaited);
  void BookProbe(const ProviderName& provider, Standing standing);

  Queues& queues_;
  const Registry& registry_;
  std::vector<PoolView> pools_;
  std::vector<bool> had_free_nodes_;  // by position
  std::map<ProviderName, std::vector<std::size_t>> of_provider_;
  std::int64_t last_priority_ = 0;  // the greatest of all pools
  std::map<std::string, TenantView> tenants_;
  std::set<NodeId> taken_;  // by requests accepted in this decision
  std::uint64_t question_count_ = 0;
};

}  // namespace nodepool::sched
