#pragma once

#include <memory>
#include <string>
#include <vector>

#include "async/task.h"
#include "driver/provider_config.h"
#include "driver/quota_information.h"
#include "model/node.h"

namespace nodepool::store {
class LockedNode;
struct StoredNode;
struct StoredRequest;
}  // namespace nodepool::store

namespace nodepool::driver {

// Notified by the core of changes of the provider's nodes.
class ProviderNotifications {
 public:
  virtual ~ProviderNotifications() = default;
  // The node's record was removed by a deletion that this launcher carried out.
  virtual void NodeDeleted(const NodeId& /*id*/, const Node& /*node*/) {}
};

class NodeRequestHandlerNotifications {
 public:
  virtual ~NodeRequestHandlerNotifications() = default;
  // A ready node was taken for the request; or the node belonged to the request already when this provider
  // replaced another one.
  virtual void NodeReused(const Node& /*node*/) {}
};

// A driver's part in serving one request; made when the request is accepted and
// destroyed after it was fulfilled or given back.
class NodeRequestHandler : public NodeRequestHandlerNotifications {
 public:
  // May veto the reuse of a ready node (another zone, a dead host). Called before
  // the node is locked; may have side effects.
  virtual Task<bool> CheckReusableNode(const store::StoredNode& node);

  // Fills in what the driver wants in a new node's record before it is created.
  virtual Task<> SetNodeMetadata(Node& node);

  // Brings the node, locked and `building`, to life. Ends when the machine is
  // usable and the record is written as `ready`; or throws: kQuota (the core makes
  // the node `aborted` and the request waits), kLostSession, kCancelled, anything
  // else (the core makes it `failed`). Repeating failed attempts is the driver's
  // work. What it made of the machine before failing is removed by the deletion of
  // the node, so `external_id` is stored the moment it is known.
  virtual Task<> Launch(store::LockedNode& node) = 0;
};

// One configured provider at work. Replaced as a whole when its configuration
// changes: Idle() on the old one, Start() on the new one, Stop() on the old one.
class Provider : public ProviderNotifications {
 public:
  virtual const ProviderConfig& config() const = 0;

  // Starts background work; an error means that the provider cannot be used now.
  virtual Task<> Start() = 0;
  // A successor is about to start: stop whatever would fight with it. Returns at once.
  virtual void Idle() {}
  // Ends when all background work has ended; deletions are finished or abandoned.
  virtual Task<> Stop() = 0;

  // False for providers that only hand out nodes which exist already (static): a
  // request is then accepted only when free nodes cover all of it, and waits
  // `requested` otherwise (D-25).
  virtual bool launches_nodes() const { return true; }

  // Whether a request for the label would succeed given free resources, e.g. the
  // image exists. May be answered from a cache; does not consider quota. A provider that answers kUnknown
  // calls ProviderEnvironment::capacity_changed once it is known.
  virtual Readiness LabelReady(const LabelConfig& /*label*/) { return Readiness::kReady; }

  // What Nodepool may use in this provider altogether: the cloud's limits minus what other users of the cloud
  // have. The last known value; unlimited until first known, or for drivers without limits.
  virtual QuotaInformation AvailableQuota() { return QuotaInformation::Limit({}); }

  // What those other users have: the cloud's limits are AvailableQuota() and this together. An accepted
  // request waits for it; only the limits themselves can be too small for it.
  virtual QuotaInformation UsedByOthers() { return {}; }
  // Whether new requests wait for it, too, since it comes and goes. False: what does not fit beside it is
  // declined, as by the Python implementation.
  virtual bool waits_for_others() const { return false; }

  // What one node of the label needs. Error(kInvalid): the label's configuration
  // can never work; the core then treats it as not available. Any other error: it is
  // not known now, and requests wait (D-26).
  virtual QuotaInformation QuotaForLabel(const LabelConfig& /*label*/) {
    return QuotaInformation::OneInstance();
  }

  // Reads again what labels name and was missing when it was last read, such as an image: LabelReady and
  // QuotaForLabel answer by it afterwards. Called before a request is declined for that alone. A caller that
  // comes while another's look is under way gets the next one. Default: nothing is kept that could be old.
  virtual Task<> LookAgain();

  // The cloud refused for quota: what AvailableQuota() knows is out of date.
  virtual void InvalidateQuota() {}

  virtual std::unique_ptr<NodeRequestHandler> RequestHandler(std::shared_ptr<const PoolConfig> pool,
                                                             const store::StoredRequest& request) = 0;

  // Removes the resources of the node, whose state is `deleting` and whose lock the caller holds, and ends
  // when they are gone. A machine that does not exist is success. Errors: the caller retries later.
  virtual Task<> DeleteResources(const NodeId& id, const Node& node) = 0;

  // Called once a minute: finds and removes what leaked, re-synchronises with the
  // configuration.
  virtual Task<> CleanupLeakedResources() = 0;
};

}  // namespace nodepool::driver
