#pragma once

#include <optional>
#include <string>

#include "sched/requests/fill.h"

namespace nodepool::sched {

// A limit that a request does not fit into now, with the figures. Amounts as in resources.h.
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

}  // namespace nodepool::sched
