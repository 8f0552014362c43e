#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "model/component.h"
#include "model/node.h"
#include "model/node_request.h"
#include "sched/requests/fill.h"
#include "sched/requests/reason.h"

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
  bool operator==(const RegisteredPool&) const = default;
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

// "no launcher offers label smal; did you mean small?" for the first label that no registered pool offers.
// Empty: all are offered, or that cannot be known: no pool is registered, or a launcher is only starting, and
// may offer it (http-requests.md 3). `configured` are labels of pools that are known although they are not
// registered, and `known` the providers that have them.
std::string FaultOfLabels(const std::vector<LabelName>& labels,
                          const std::vector<const Component*>& components,
                          const std::set<LabelName>& configured = {},
                          const std::set<ProviderName>& known = {});

// A pool worker that declines a request.
struct Decliner {
  LauncherId launcher;
  std::string reason;  // for operators, with the names of provider and pool
};

// Writes into the request's record that these pool workers decline it. Its state becomes `failed`
// when all registered pools have declined; otherwise it is `requested`, for other launchers
// (launcher.md 9.2, 9.3).
void Decline(NodeRequest& request, const std::vector<Decliner>& decliners, const Registry& registry,
             WallTime now);

// Whether one pool serves one request.

struct TenantView {
  Resources limit;  // absent: unlimited
  Resources used;   // by all nodes of the tenant, anywhere
  bool operator==(const TenantView&) const = default;
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

  bool operator==(const Decision&) const = default;
};

using Answers = std::vector<std::pair<PoolKey, Decision>>;

// Which registered pools can serve a request: found once, however many pools are asked about it. By their
// positions in the registry.
struct Offers {
  Offers() = default;
  Offers(const Registry& registry, const NodeRequest& request);

  // Another pool that can serve it and whose launches work, or null. The Python implementation's leave it to
  // pools with a smaller number, whatever their breakers are.
  const RegisteredPool* HealthyOther(const Registry& registry, const PoolView& pool) const;

  std::optional<std::size_t> first;  // of those that offer its labels and have not declined it
  std::vector<std::size_t> healthy;  // of these: those that can be used and whose launches work
  bool is_provider_binding = false;  // only the requested provider is to serve it
  // The first of the least priority number among those that are neither paused nor failing, and whose
  // launches work.
  std::optional<std::size_t> preferred;
};

// What a question about a request is asked with. `tenant` is null when the request's tenant has no limits;
// `taken_nodes` are those that earlier requests have taken.
struct Question {
  const Registry& registry;
  const Offers& offers;
  const TenantView* tenant;
  const NodeRequest& request;
  const std::set<NodeId>& taken_nodes;
};

// One pool's answer (launcher.md 8, 9.2; D-33).
Decision Ask(const PoolView& pool, const Question& question);

// The answer about a single request.
Decision Consider(const PoolView& pool, const Registry& registry, const TenantView* tenant,
                  const NodeRequest& request);

// The part of an answer that does not depend on current usage: kDecline with the reason, kDefer when the
// driver cannot say, or kAccept. Evaluated again while a request waits, since limits may have
// changed.
Decision DeclineReason(const PoolView& pool, const NodeRequest& request);

// The resources that nodes of those of the labels that the pool offers need in total.
Resources NeedOf(const PoolView& pool, const std::vector<LabelName>& labels);

// How the worst of the breakers for the request's labels stands.
Standing StandingFor(const PoolView& pool, const NodeRequest& request);

// Whether a breaker bars the request's launches in the pool, and another pool can serve it (breaker.md 3):
// one that offers its labels, has not declined it, can be used and has no open breaker for them.
bool IsLeftByBreaker(const PoolView& pool, const Registry& registry, const NodeRequest& request);

// Whether it is left to another pool although the breaker may be probed: then a launch is tried that no
// request waits for.
bool IsProbeWanted(const PoolView& pool, const Registry& registry, const NodeRequest& request);

}  // namespace nodepool::sched
