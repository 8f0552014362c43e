#pragma once

#include <map>
#include <string>

#include "base/ids.h"
#include "base/subscription.h"
#include "model/resources.h"
#include "store/cache/node_cache.h"

namespace nodepool::launcher {

// What accepted requests of limited tenants need beyond the nodes that count for the
// tenant already. Without it, requests accepted one after the other would each find
// the tenant's share unused. Kept up to date by the changes of the requests' nodes.
class Promises {
 public:
  // `nodes` outlives this.
  explicit Promises(store::NodeCache& nodes);

  // The request was accepted by the pool worker `launcher` and needs `need` altogether.
  void Make(const RequestId& request, std::string tenant, Resources need, LauncherId launcher);
  // It is decided. One that was never made is fine.
  void Release(const RequestId& request);

  // What is still to come for the tenant.
  const Resources& Of(const std::string& tenant) const;

 private:
  struct Promise {
    std::string tenant;
    Resources need;
    LauncherId launcher;
    Resources open;  // of the need, as counted for the tenant
  };

  void Recount(const RequestId& request);
  bool IsPart(const Promise& promise, const Node& node) const;

  store::NodeCache& nodes_;
  std::map<RequestId, Promise> promises_;
  std::map<std::string, ResourceSum> open_;  // by tenant
  Subscription subscription_;
};

}  // namespace nodepool::launcher
