#pragma once

#include <algorithm>
#include <boost/json/value.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/task.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log/logging.h"
#include "driver/driver.h"
#include "driver/provider_config.h"
#include "driver/provider_environment.h"
#include "model/node_request.h"

namespace nodepool::driver::cloud {

// The provider around an adapter, as the adapter sees it. Calls are cheap, and made on the loop, but not from
// the adapter's constructor. This class itself is for an adapter that a builder or a command uses for a few
// calls: nobody wants to know anything of it.
class Framework {
 public:
  virtual ~Framework() = default;
  // The cloud announces that it takes machines away, and its lists show a new machine at once:
  // Adapter::MissingMachines is called at once, and again soon.
  virtual void MachinesTaken() {}
  // The cloud announces its limits, or what others use of them: both are read again, at most once a second.
  virtual void QuotaChanged() {}
  // QuotaForLabel, which is asked once for each label, would answer differently now.
  virtual void NeedsChanged() {}
  // What LabelReady answers has changed, or capacity has for a reason that the node records do not show:
  // waiting requests are considered again.
  virtual void CapacityChanged() {}
  // Whether records of this provider's images exist. If not, none can have leaked, so none need be listed.
  virtual bool HasImages() const { return true; }
};

// What an adapter may use. Everything outlives it.
struct AdapterEnvironment : DriverEnvironment {
  Framework& framework;
  // Null when nobody wants to know.
  ProviderObserver* observer = nullptr;
};

// The settings of a provider as the types that its driver derives (LoadProviderConfig).

// A provider, pool, label or disk image as the type that its driver has made it of. Error(kFail): another
// driver has made it.
template <class Own, class Settings>
const Own& As(const Settings& settings) {
  // Launcher and builder keep the settings of all drivers as one type, so that none of them knows a driver.
  const auto* own = dynamic_cast<const Own*>(&settings);
  if (own == nullptr) throw Error(Verdict::kFail, "these settings were made by another driver");
  return *own;
}

// The same, shared.
template <class Own, class Settings>
std::shared_ptr<const Own> As(const std::shared_ptr<Settings>& settings) {
  return {settings, &As<Own>(*settings)};
}

// All pools. They live as long as the configuration.
template <class Pool>
std::vector<const Pool*> PoolsOf(const ProviderConfig& config) {
  std::vector<const Pool*> pools;
  for (const auto& [name, pool] : config.pools) pools.push_back(&As<Pool>(*pool));
  return pools;
}

// All labels of a pool, likewise.
template <class Label>
std::vector<const Label*> LabelsOf(const PoolConfig& pool) {
  std::vector<const Label*> labels;
  for (const auto& [name, label] : pool.labels) labels.push_back(&As<Label>(*label));
  return labels;
}

// All labels of all pools, likewise.
template <class Label>
std::vector<const Label*> LabelsOf(const ProviderConfig& config) {
  std::vector<const Label*> labels;
  for (const auto& [name, pool] : config.pools) {
    for (const Label* label : LabelsOf<Label>(*pool)) labels.push_back(label);
  }
  return labels;
}

// The first label of all pools that is such, likewise; null: none is.
template <class Label, class Predicate>
const Label* FindLabel(const ProviderConfig& config, Predicate is_such) {
  for (const auto& [pool_name, pool] : config.pools) {
    for (const auto& [name, label] : pool->labels) {
      const Label& own = As<Label>(*label);
      if (std::invoke(is_such, own)) return &own;
    }
  }
  return nullptr;
}

// Whether one of the labels is such: AnyLabel<OwnLabel>(config, &OwnLabel::use_spot).
template <class Label, class Predicate>
bool AnyLabel(const ProviderConfig& config, Predicate is_such) {
  return FindLabel<Label>(config, is_such) != nullptr;
}

// The same of the pools.
template <class Pool, class Predicate>
bool AnyPool(const ProviderConfig& config, Predicate is_such) {
  return std::ranges::any_of(config.pools,
                             [&](const auto& pool) { return std::invoke(is_such, As<Pool>(*pool.second)); });
}

// How to connect to a machine, as far as that differs from its image's configuration: only members that are
// set count. A text may be set to none: the machine has none.
struct ConnectionOverrides {
  using Text = std::optional<std::string>;
  std::optional<Text> username;
  std::optional<Text> python_path;
  std::optional<Text> shell_type;
  std::optional<Text> connection_type;
  // A port, or an object with access data that must never be logged. With an object, no host keys are
  // scanned.
  std::optional<boost::json::value> connection_port;
};

// A cloud's machine as the framework sees it (drivers.md 5.2).
struct Instance {
  boost::json::value external_id;  // text or object
  std::string name;                // in the cloud, for operators
  std::optional<std::string> interface_ip;
  std::optional<std::string> public_ipv4;
  std::optional<std::string> public_ipv6;
  std::optional<std::string> private_ipv4;
  std::optional<std::string> private_ipv6;
  std::optional<std::string> cloud;
  std::optional<std::string> az;
  std::optional<std::string> region;
  std::optional<std::string> host_id;
  boost::json::value driver_data;
  std::optional<std::int64_t> slot;
  std::map<std::string, std::string> metadata;  // as given at creation; shows whose it is
  QuotaInformation quota;
  ConnectionOverrides connection;
  // As the cloud reports them. If the keys are scanned as well, both must agree.
  std::optional<std::vector<std::string>> host_keys;
  // The time for its key scan, where it is known to need more than others; none: the provider's.
  std::optional<Duration> boot_timeout;
  boost::json::value node_attributes;  // null, or an object that the pool's attributes override
  // The kind of machine, one of those that the configuration names: "m5.large spot". For metrics, so not an
  // id; empty: it is not counted.
  std::string machine_type = {};
  // Where the cloud chose what the machine is: what, and why. Shown to operators; empty: it had no choice.
  std::string choice = {};
  // What the machine costs per hour, in the unit of the configuration; none: that is not known.
  std::optional<double> hourly_price = std::nullopt;
};

// What a node's record has for its user's access.
struct NodeAccess {
  boost::json::value connection_port;
  boost::json::value driver_data;
};

// How long that access still lasts.
enum class AccessState {
  kLasts,
  kRenewalDue,  // to be renewed while the node is ready
  kEnds,        // too soon for a user: the node is not handed out any more
};

// Anything in the cloud that may leak: a server, a port, an image ... (drivers.md 5.3).
struct Resource {
  std::string type;  // alphanumeric; part of a metric's name
  std::string id;
  std::map<std::string, std::string> metadata;
  // The resource may hold data after its node's machine is gone, like a volume: deleted only if this tree
  // once had the node (D-99). Not needed for what has an upload's metadata.
  bool outlives_machine = false;
  std::string plural_metric_name() const { return type + "s"; }
};

// The cloud says that a machine has ended, or that it will take it away.
struct AnnouncedEnd {
  boost::json::value external_id;
  std::string reason;  // the cloud's words
};

// A creation failed in a way that has its own metric (drivers.md 3). Any other Error is counted by its
// verdict and the step.
class LaunchError : public Error {
 public:
  enum class Kind {
    kCapacity,   // the cloud has no free machine of that size now
    kCandidate,  // this candidate is refused for a reason that need not hold for the next
    kStatus,     // the machine went into an error state
    kNetwork,    // no usable address
  };
  LaunchError(Kind kind, std::string message) : Error(Verdict::kFail, std::move(message)), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

// The adapter reports the progress of one creation or deletion to this.
class MachineReport {
 public:
  virtual ~MachineReport() = default;

  // What is being waited for, e.g. "creating server". Shown to operators.
  virtual void SetState(std::string state) = 0;

  // The cloud has given the machine its id. Await this at once: when it ends, the id is stored, and whatever
  // happens next, the machine can be found and deleted.
  virtual Task<> SetExternalId(boost::json::value id) = 0;

  virtual const log::Logger& logger() const = 0;
  virtual int attempt() const = 0;  // 1 for the first

  // The node's pool as configured now; null when it is unknown or no longer configured.
  virtual std::shared_ptr<const PoolConfig> pool() const { return nullptr; }
};

// The parameters of a creation.
struct CreateParameters {
  std::string hostname;  // "np<node id>": the machine's name in the cloud
  std::shared_ptr<const LabelConfig> label;
  std::shared_ptr<const PoolConfig> pool;
  std::optional<std::string> image_external_id;  // the upload's; none: boot the label's cloud image
  // To be stored with the machine and to come back in ListInstances/ListResources.
  std::map<std::string, std::string> metadata;
  // 32 hex digits, random and new for each creation. What carries them was made by this one, even if the
  // cloud's answer was lost; what has only the same name or metadata may be another installation's, or a
  // former node's, since node ids begin again in a new tree.
  std::string attempt_mark;
  RequestId request_id;
  NodeRequest request;
  std::optional<std::string> az;  // zone chosen for the request
  std::size_t candidate = 0;      // which of Adapter::Candidates(label, pool) to create; 0 if there are none
};

// The calls to the cloud, written by a driver's author. They must not block the loop. The adapter maps faults
// to verdicts and keeps the cloud's own message. kRetry and kRateLimited say nothing about the call: the
// provider counts as away until it answers again, and launches are repeated. kQuota (driver::Refusal where it
// is known what is short), kNotFound, kInvalid and anything else are about what was asked for.
class Adapter {
 public:
  virtual ~Adapter() = default;

  // Begins background work: watches, ports, what is read or made ahead of launches. Called before anything
  // else by a provider that launches nodes, and not where a builder or a command makes a few calls. Default:
  // there is none.
  virtual void Start() {}

  // Creates a machine and ends when it is usable. When cancelled (kCancelled) it ends soon; what it made is
  // deleted later by the stored external id.
  virtual Task<Instance> Create(MachineReport& machine, CreateParameters parameters) = 0;

  // The kinds of machine that a node of the label may be, with the places for them, the preferred one first;
  // each has a name for operators ("m5.large in us-west-2a"), which is the same in all labels. When a
  // creation ends with LaunchError(kCapacity or kCandidate), the launch tries the next one, and other
  // launches avoid that one for a while. Default: empty, there is no choice.
  virtual std::vector<std::string> Candidates(const LabelConfig& label, const PoolConfig& pool);

  // Deletes the machine and ends when it is gone. An id that no longer exists is
  // success (or kNotFound). Called again after an error; must be idempotent.
  virtual Task<> Delete(MachineReport& machine, boost::json::value external_id) = 0;

  // All machines visible to the account, including foreign ones; for quota.
  virtual Task<std::vector<Instance>> ListInstances() = 0;
  // All kinds of resources, with metadata; for leak detection. Once a minute.
  virtual Task<std::vector<Resource>> ListResources() = 0;
  virtual Task<> DeleteResource(Resource resource) = 0;

  // Which of `ids`, external ids of this provider's nodes, name machines that the cloud has taken away.
  // Called once a minute; two consecutive equal answers count. Default: none. An adapter whose ListInstances
  // lists every existing machine returns NotListed().
  virtual Task<std::vector<boost::json::value>> MissingMachines(std::vector<boost::json::value> ids);
  // Which of `ids` name machines that the cloud shows as ended or stopped, or has announced to take away
  // soon. Called with MissingMachines; one answer counts. Default: none.
  virtual Task<std::vector<AnnouncedEnd>> AnnouncedEnds(std::vector<boost::json::value> ids);

  // The account's limits; default: unlimited.
  virtual Task<QuotaInformation> QuotaLimits();
  // What others use of the limits, for an adapter that follows it as it comes and goes: new requests wait for
  // it then, and only the limits themselves decline them. Default: none, it is the sum of those of
  // ListInstances that no node describes.
  virtual std::optional<QuotaInformation> UsedByOthers();
  // What one node needs; default: one instance. Error(kInvalid): never possible. The answer is kept until
  // Framework::NeedsChanged.
  virtual QuotaInformation QuotaForLabel(const LabelConfig& label);
  // Reads again which images, sizes and so on exist of those that labels name and the cloud did not have.
  // Called before a request is declined for that alone. Default: LabelReady and QuotaForLabel need no such
  // reading.
  virtual Task<> LookAgain();
  // Of a node that is ready: asked once a minute, and before the node is handed out. Default: it lasts.
  virtual Task<AccessState> StateOfAccess(NodeAccess access);
  // What takes the place of access that does not last; the old one may go on. Only nodes that are ready get
  // it, since a user's record is the user's.
  virtual Task<NodeAccess> RenewAccess(boost::json::value external_id, NodeAccess access);
  // Zones to choose from when the pool names none; default: one unnamed zone.
  virtual Task<std::vector<std::optional<std::string>>> AvailabilityZones();
  // Whether the label's cloud image exists; default: yes. An adapter that answers kUnknown calls
  // Framework::CapacityChanged once it is known.
  virtual Readiness LabelReady(const LabelConfig& label);

  // What is wrong with the provider as its cloud is now, a sentence each; changes nothing there. An
  // error: the cloud cannot be used at all. Default: QuotaLimits and ListInstances are read, then
  // each label is asked for its size and its cloud image.
  virtual Task<std::vector<std::string>> FindFaults(const ProviderConfig& config);

  // For drivers that manage images. Default: Error(kInvalid) "not supported".
  using ImageUpload = ImageUploadParameters;
  // Ends with the image's external id when machines can be made from it. On failure or cancellation
  // (kCancelled) it removes what it made, as far as the cloud allows.
  virtual Task<std::string> UploadImage(ImageUpload upload);
  // An image that no longer exists is success (or kNotFound).
  virtual Task<> DeleteImage(std::string external_id);
  // Images made by any Nodepool, for operators. Default: none.
  virtual Task<std::vector<ListedImage>> ListImages();

  // For the diagnosis of failed key scans; default: none.
  virtual Task<std::optional<std::string>> ConsoleLog(const LabelConfig& label,
                                                      boost::json::value external_id);
  virtual void NotifyNodescanFailure(const LabelConfig& /*label*/,
                                     const boost::json::value& /*external_id*/) {}

  // Ends the adapter's background work.
  virtual Task<> Stop();

 protected:
  // Those of `ids` that ListInstances does not list.
  Task<std::vector<boost::json::value>> NotListed(std::vector<boost::json::value> ids);
};

// Awaits a deletion; kNotFound, i.e. nothing to delete, is success.
Task<> EnsureGone(Task<> deletion);

// An adapter of a driver with its own configuration types: `Config`, `Label` and `Pool` are what its
// LoadProviderConfig creates.
template <class Config, class Label = LabelConfig, class Pool = PoolConfig>
class CloudAdapter : public Adapter {
 protected:
  // Error(kFail): `config` was made by another driver.
  explicit CloudAdapter(const std::shared_ptr<const ProviderConfig>& config) : config_(As<Config>(config)) {}

  // A label or pool of this provider as the driver's own type.
  static const Label& Own(const LabelConfig& label) { return As<Label>(label); }
  static const Pool& Own(const PoolConfig& pool) { return As<Pool>(pool); }

  const std::shared_ptr<const Config> config_;  // never null
};

}  // namespace nodepool::driver::cloud
