#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/loop.h"
#include "async/task.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/log/logging.h"
#include "driver/records_environment.h"
#include "drivers/metastatic/backing_nodes.h"
#include "drivers/metastatic/metastatic_config.h"

namespace nodepool::drivers {

// The requests of one owner for backing nodes, and the creations that wait for a slot (drivers.md 8.3, 8.4).
//
// Requests made here are ephemeral: those of a launcher that died vanish, and nodes delivered for them become
// free. Those that outlived the session of a former process are adopted.
class BackingRequests {
 public:
  // A creation that has no slot yet.
  struct Waiter {
    NodeId node;
    const MetastaticLabel* label;  // the configuration's
    RequestId request;             // the request whose node is for this one; empty: none yet
    bool is_alive = true;          // false: the creation has ended
    OneShot<Place> place;

    bool needs_place() const { return is_alive && !place.is_done(); }
  };
  using Waiters = std::vector<std::shared_ptr<Waiter>>;

  // Claimed nodes are added to `nodes`. All arguments outlive it.
  BackingRequests(Loop& loop, const driver::RecordsEnvironment& records, BackingNodes& nodes,
                  std::shared_ptr<const MetastaticConfig> config, log::Logger logger);

  // Follows a record that changed, appeared or (null) vanished. Returns whether it was relevant.
  bool Follow(const RequestId& id, const store::StoredRequest* before, const store::StoredRequest* after);

  // The caller awaits its place, and removes it whatever happens. Its request may fail it.
  std::shared_ptr<Waiter> AddWaiter(NodeId node, const MetastaticLabel& label);
  void RemoveWaiter(const std::shared_ptr<Waiter>& waiter);
  // The labels that creations wait for.
  std::map<LabelName, const MetastaticLabel*> WaitingLabels() const;
  // Those without a place, in order of arrival, as many as one write may serve.
  Waiters WaitingFor(const MetastaticLabel& label) const;

  // Adopts requests that outlived the session of a former process: each is served to the end, or withdrawn
  // (D-84).
  Task<> AdoptOrphans();
  // Claims the nodes of fulfilled requests, and fails the waiters of failed ones.
  Task<> FollowRequests();
  // Makes one request for as many waiters as its node will have slots.
  Task<> RequestMissing();
  // Requests whose node is no longer needed.
  Task<> WithdrawUnused();
  // All of them, as far as that does not take long: they would vanish with the session, but be useless until
  // then.
  Task<> WithdrawAll();

 private:
  // Made here or adopted.
  struct Request {
    const MetastaticLabel* label;
    WallTime made;
    bool is_seen = false;  // in the cache
  };

  Task<bool> FollowRequest(RequestId id, Request request);
  Task<> Claim(RequestId id, Request request, NodeId node);
  Task<> Fail(RequestId id, std::string why);
  void Drop(const RequestId& id);
  int CountWaiting(const RequestId& request) const;

  Loop& loop_;
  const driver::RecordsEnvironment& records_;
  BackingNodes& nodes_;
  std::shared_ptr<const MetastaticConfig> config_;
  std::string owner_;
  log::Logger logger_;
  Waiters waiters_;  // in order of arrival
  std::map<RequestId, Request> requests_;
  std::set<RequestId> orphans_;
};

}  // namespace nodepool::drivers
