#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sched/requests/queues.h"

namespace nodepool::sched {

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
