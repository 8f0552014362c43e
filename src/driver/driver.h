#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "async/task.h"
#include "base/clock.h"
#include "base/error.h"
#include "config/config.h"
#include "config/schema/schema.h"
#include "driver/provider_config.h"
#include "driver/provider_environment.h"
#include "model/node.h"

namespace nodepool::driver {

// Called with the id that a cloud has given to an image, before the upload is complete; awaited.
using AnnounceImage = std::function<Task<>(std::string external_id)>;

// How far an upload has come.
struct UploadProgress {
  std::string step;  // what is being done: "sending the file"
  int percent = 0;   // of the step
};

// The parameters of an image's upload to a cloud (builder.md 11).
struct ImageUploadParameters {
  std::shared_ptr<const ProviderDiskImage> image;
  std::string name;              // in the cloud
  std::string filename;          // the local file
  std::string format;            // of the file
  boost::json::object metadata;  // to be stored with the image; shows whose it is
  std::optional<std::string> md5;
  std::optional<std::string> sha256;
  Duration timeout = std::chrono::seconds(3600);  // for all of it
  // Call once the image has an id by which it can be deleted, so that another process can delete it should
  // this one die. Not needed for a cloud that reports the id only at the end.
  AnnounceImage announce = [](std::string) -> Task<> { co_return; };
  // Call it as often as there is news; the builder logs what operators need, and writes it into the upload's
  // record.
  std::function<void(const UploadProgress&)> report = [](const UploadProgress&) {};
};

// A provider's images, for the builder.
class ImageStore {
 public:
  virtual ~ImageStore() = default;
  virtual const ProviderConfig& config() const = 0;
  // Uploads a local file to the cloud and ends with the image's external id when machines can be made from it
  // (builder.md 11). The provider's name is added to the metadata.
  virtual Task<std::string> UploadImage(ImageUploadParameters upload) = 0;
  // Ends when the image is gone; one that does not exist is success.
  virtual Task<> DeleteImage(std::string external_id) = 0;
  // Ends when the uploads and deletions under way have ended.
  virtual Task<> Stop() = 0;
};

// What exists in a cloud, for listings that operators read.
struct ListedMachine {
  std::string name;
  std::string id;
  std::string address;                          // the public IPv4 one; empty: none
  std::map<std::string, std::string> metadata;  // shows whose it is
};

// An image in the cloud.
struct ListedImage {
  std::string name;
  std::string id;
  std::map<std::string, std::string> metadata;
};

// What a command asks of a provider. Made for a few calls, with or without a launcher beside it.
class OperatorTools {
 public:
  virtual ~OperatorTools() = default;
  // Default: there is nothing that the driver can list or check.
  virtual Task<std::vector<ListedMachine>> ListMachines();  // everybody's
  virtual Task<std::vector<ListedImage>> ListImages();      // those made by any Nodepool
  // What is wrong with the provider as it is now, a sentence each: what the configuration names and the cloud
  // does not have. Changes nothing there. An error: it cannot be used at all, for instance because its cloud
  // refuses the login.
  virtual Task<std::vector<std::string>> FindFaults();
  // As Provider::DeleteResources. Default: Error(kInvalid), only launchers can.
  virtual Task<> DeleteResources(const NodeId& id, const Node& node);
  // Ends the work that the calls have begun. Call it after the last one.
  virtual Task<> Stop();
};

}  // namespace nodepool::driver

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

// Why a launch was refused for lack of what others may give back: an Error(kQuota) that says what is lacking.
// The node is given up without using an attempt; its request waits and launches another (launcher.md 15.3).
class Refusal : public Error {
 public:
  enum class Kind {
    kQuota,     // the account may not use more
    kCapacity,  // the cloud itself has no more; another pool may
  };
  // `resources`, of what a node of the label needs, are all that can be short; none: that is unknown, and
  // only the label itself is held back.
  Refusal(Kind kind, std::string message, std::set<std::string> resources = {})
      : Error(Verdict::kQuota, std::move(message)), kind_(kind), resources_(std::move(resources)) {}
  // A quota that counts as `resource` is used up. `need`: of a node of the label; where it lacks the
  // resource, that is not what is short.
  static Refusal OfQuota(const std::string& resource, const Resources& need, std::string message) {
    std::set<std::string> lacking;
    if (need.contains(resource)) lacking.insert(resource);
    return Refusal(Kind::kQuota, std::move(message), std::move(lacking));
  }

  Kind kind() const { return kind_; }
  const std::set<std::string>& resources() const { return resources_; }

 private:
  Kind kind_;
  std::set<std::string> resources_;
};

class Provider;       // driver/driver.h
class ImageStore;     // driver/driver.h
class OperatorTools;  // driver/driver.h

// A kind of cloud, by name. One object per process; has no state except global configuration caches.
class Driver {
 public:
  virtual ~Driver() = default;
  virtual std::string_view name() const = 0;

  // What a provider section of this driver may contain, besides the keys common to
  // all drivers. Validation, error messages and documentation come from it.
  virtual const config::Schema& ProviderSchema() const = 0;

  // Drops cached process-global configuration (e.g. clouds.yaml); called before each
  // load of the configuration.
  virtual void Reset() {}

  // Reads one section; no network. Resolves references to labels and disk images and
  // adds the provider's image format to the disk images it lists. Error(kInvalid)
  // names line and column.
  virtual std::shared_ptr<const ProviderConfig> LoadProviderConfig(const config::ProviderSection& section,
                                                                   config::Config& config) = 0;

  // What a launcher, a builder and a command ask of the driver. `config` is LoadProviderConfig's result. An
  // Error means that it cannot be used now. Default: images are not supported, and a command can do nothing.
  virtual std::unique_ptr<Provider> CreateProvider(ProviderEnvironment environment,
                                                   std::shared_ptr<const ProviderConfig> config) = 0;
  virtual std::unique_ptr<ImageStore> CreateImageStore(DriverEnvironment environment,
                                                       std::shared_ptr<const ProviderConfig> config);
  virtual std::unique_ptr<OperatorTools> CreateOperatorTools(ToolsEnvironment environment,
                                                             std::shared_ptr<const ProviderConfig> config);
};

// The drivers of the process by name. Built-in ones are added in main/, others by
// LoadDrivers (load_drivers.h).
class Registry {
 public:
  static constexpr std::string_view kThisProgram = "this program";

  // `origin` is the file that the driver comes from, or another description of its source for operators. A
  // name already taken is Error(kInvalid), which names both origins (D-86).
  void Add(std::unique_ptr<Driver> driver, std::string origin = std::string(kThisProgram));
  // Null: there is none.
  Driver* Find(std::string_view name) const;
  std::vector<std::string> Names() const;
  // The names of drivers loaded from files, by file.
  std::map<std::string, std::string> NamesByFile() const;

 private:
  struct Entry {
    std::unique_ptr<Driver> driver;
    std::string origin;
  };
  std::map<std::string, Entry, std::less<>> drivers_;
};

}  // namespace nodepool::driver
