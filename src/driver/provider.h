#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "async/blocking_pool.h"
#include "async/loop.h"
#include "async/task.h"
#include "base/random.h"
#include "driver/cloud_listing.h"
#include "driver/image_upload.h"
#include "driver/observer.h"
#include "driver/provider_config.h"
#include "driver/quota_information.h"
#include "store/cache/image_cache.h"
#include "store/cache/node_cache.h"
#include "store/store.h"

namespace nodepool::store {
class ComponentRegistry;
class RequestCache;
}  // namespace nodepool::store

namespace nodepool::driver {

// What a driver may use of its surroundings. Everything outlives the provider.
struct ProviderEnvironment {
  Loop& loop;
  Random& random;
  BlockingPool& blocking_pool;
  store::Store& store;
  store::NodeCache& nodes;
  store::ImageCache& images;
  // To be called when capacity may have changed for a reason that the node records
  // do not show: quota was re-read, an image appeared. Waiting requests are looked
  // at again. Cheap; may be called from anywhere on the loop.
  std::function<void()> capacity_changed;
  // Null when nobody wants to know.
  ProviderObserver* observer = nullptr;
  // Null where nobody follows requests: in the builder and the command line.
  store::RequestCache* requests = nullptr;
  // Null where nobody follows who is there: as `requests`.
  const store::ComponentRegistry* components = nullptr;
  // The provider lives for a few calls, in the command line: it offers nothing to other
  // processes, so it opens no port.
  bool is_for_one_command = false;
};

// Told by the core about things that happened to the provider's nodes.
class ProviderNotifications {
 public:
  virtual ~ProviderNotifications() = default;
  // The node's record was removed by a deletion that this launcher carried out.
  virtual void NodeDeleted(const NodeId& /*id*/, const Node& /*node*/) {}
};

class NodeRequestHandlerNotifications {
 public:
  virtual ~NodeRequestHandlerNotifications() = default;
  // A ready node was taken for the request; or, of a provider that replaces another
  // in the middle of it, the node belongs to the request already.
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
  // image exists. May be answered from a cache; never looks at quota. Who answers
  // kUnknown calls ProviderEnvironment::capacity_changed once it is known.
  virtual Readiness LabelReady(const LabelConfig& /*label*/) { return Readiness::kReady; }

  // What Nodepool may use in this provider altogether: the cloud's limits less what
  // others use there. The last known value; unlimited until first known, or for
  // drivers without limits.
  virtual QuotaInformation AvailableQuota() { return QuotaInformation::Limit({}); }

  // What one node of the label needs. Error(kInvalid): the label's configuration
  // can never work; the core then treats it as not available. Any other error: it is
  // not known now, and requests wait (D-26).
  virtual QuotaInformation QuotaForLabel(const LabelConfig& /*label*/) {
    return QuotaInformation::OneInstance();
  }

  // The cloud refused for quota: what AvailableQuota() knows is out of date.
  virtual void InvalidateQuota() {}

  virtual std::unique_ptr<NodeRequestHandler> RequestHandler(std::shared_ptr<const PoolConfig> pool,
                                                             const store::StoredRequest& request) = 0;

  // Removes what stands behind the node, whose record says `deleting` and whose
  // lock the caller holds, and ends when it is gone. A machine that does not exist
  // is success. Errors: the caller retries later.
  virtual Task<> DeleteResources(const NodeId& id, const Node& node) = 0;

  // --- Images: for the builder, and providers whose configuration manages them -----
  // Brings a local file into the cloud and ends with the image's external id when
  // machines can be made from it (builder.md 11). The provider adds its name to the
  // metadata. Default: Error(kInvalid) "not supported".
  virtual Task<std::string> UploadImage(ImageUploadParameters upload);
  // Ends when the image is gone; one that does not exist is success.
  virtual Task<> DeleteImage(std::string external_id);

  // --- For people who look at what stands in the cloud ------------------------------
  // May be asked without Start(). Default: Error(kInvalid) "not supported".
  virtual Task<std::vector<ListedMachine>> ListMachines();  // everybody's
  virtual Task<std::vector<ListedImage>> ListImages();      // those that some Nodepool made

  // Called once a minute: finds and removes what leaked, re-synchronises with the
  // configuration.
  virtual Task<> CleanupLeakedResources() = 0;
};

}  // namespace nodepool::driver
