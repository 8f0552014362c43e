#include "driver/cloud/cloud_driver.h"

#include <set>

#include "async/deadline.h"
#include "async/task.h"
#include "base/version.h"
#include "driver/cloud/launch/ready_checks.h"
#include "driver/cloud/launch/request_handler.h"
#include "driver/cloud/leaks/leak_cleanup.h"
#include "driver/cloud/leaks/missing_machines.h"
#include "driver/cloud/provider_parts.h"
#include "driver/records_environment.h"
#include "model/image.h"
#include "net/http/http_client.h"
#include "net/ssh/host_key_scan.h"

namespace nodepool::driver::cloud {

namespace {

constexpr Duration kLookLimit = std::chrono::seconds(30);

class CloudProvider : public Provider, private Framework {
 public:
  CloudProvider(ProviderEnvironment environment, std::shared_ptr<const ProviderConfig> config,
                const MakeAdapter& make, HostKeyScan scan)
      : context_(std::move(environment), std::move(config), *this, make, std::move(scan)),
        leaks_(context_.environment, *context_.adapter, *context_.config),
        missing_(context_.environment, *context_.adapter, *context_.config),
        renewal_(context_.environment, *context_.adapter, *context_.config),
        ready_checks_(context_.environment, *context_.config, context_.scan) {}

  const ProviderConfig& config() const override { return *context_.config; }

  Task<> Start() override {
    context_.adapter->Start();
    FollowImages();
    context_.background.Spawn("quota of " + context_.config->name.str(), context_.quota.Run());
    context_.background.Spawn("missing machines of " + context_.config->name.str(),
                              missing_.FollowAnnouncements());
    context_.background.Spawn("checks of ready nodes of " + context_.config->name.str(), ready_checks_.Run());
    co_await context_.quota.WaitForFirstTry();
  }

  Task<> Stop() override {
    image_watch_.Reset();
    context_.quota.EndWaits();
    co_await context_.work.WaitIdle();
    co_await context_.background.Stop();
    co_await ready_checks_.Stop();
    co_await context_.adapter->Stop();
  }

  Readiness LabelReady(const LabelConfig& label) override {
    if (context_.needs.IsInError(label)) return Readiness::kNotReady;
    if (IsValidationLabel(label.name)) return Readiness::kReady;
    if (label.diskimage) return context_.Image(label) ? Readiness::kReady : Readiness::kNotReady;
    return context_.adapter->LabelReady(label);
  }

  QuotaInformation AvailableQuota() override { return context_.quota.available(); }
  QuotaInformation UsedByOthers() override { return context_.quota.used_by_others(); }
  bool waits_for_others() const override { return context_.quota.follows_others(); }
  QuotaInformation QuotaForLabel(const LabelConfig& label) override { return context_.needs.For(label); }
  Task<> LookAgain() override {
    WorkCount::Piece work(context_.work);
    co_await second_look_.Take();
  }
  void InvalidateQuota() override { context_.quota.Invalidate(); }

  std::unique_ptr<NodeRequestHandler> RequestHandler(std::shared_ptr<const PoolConfig> pool,
                                                     const store::StoredRequest& request) override {
    return std::make_unique<cloud::RequestHandler>(context_, std::move(pool), request);
  }

  Task<> DeleteResources(const NodeId& id, const Node& node) override { return DeleteMachine(id, node); }

  Task<> CleanupLeakedResources() override {
    if (!context_.quota.is_known()) co_return;  // the cloud was not reached yet
    WorkCount::Piece work(context_.work);
    DetectLabelChanges();
    Outcome<bool> has_deleted = co_await Attempt(leaks_.Run());
    // After a failure, reading the quota shows whether the cloud can be used.
    if (!has_deleted || *has_deleted) context_.quota.Invalidate();
    if (!has_deleted) has_deleted.error().Rethrow();
    co_await missing_.Check();
    co_await renewal_.Run();
  }

 private:
  void MachinesTaken() override { missing_.Announce(); }
  void QuotaChanged() override { context_.quota.Announce(); }
  void NeedsChanged() override { context_.needs.Clear(); }
  void CapacityChanged() override { context_.environment.capacity_changed(); }
  bool HasImages() const override {
    return !context_.environment.records.images.BuildsIn(context_.config->name).empty();
  }

  Task<> LookNow() {
    SteadyTime deadline = context_.loop().SteadyNow() + kLookLimit;
    co_await WithDeadline(context_.loop(), deadline, "looking again", context_.adapter->LookAgain());
    context_.needs.DoubtFaults();
  }

  // No event announces that an image appeared in the cloud, or vanished, or that an unknown size is known
  // now.
  void DetectLabelChanges() {
    std::set<LabelKey> ready;
    for (const auto& [pool_name, pool] : context_.config->pools) {
      for (const auto& [name, label] : pool->labels) {
        if (LabelReady(*label) == Readiness::kReady && IsNeedKnown(*label)) ready.insert(label->key());
      }
    }
    if (std::exchange(ready_labels_, ready) != ready) context_.environment.capacity_changed();
  }

  bool IsNeedKnown(const LabelConfig& label) {
    try {
      context_.needs.For(label);
    } catch (const Error&) {
      return false;
    }
    return true;
  }

  // An image that gets its first upload makes waiting requests possible.
  void FollowImages() {
    std::set<ImageName> images;
    for (const auto& [name, pool] : context_.config->pools) {
      for (const auto& [label_name, label] : pool->labels) {
        if (label->diskimage) images.insert(*label->diskimage);
      }
    }
    auto on_change = [this, images = std::move(images)](const ImageName& image) {
      if (images.contains(image)) context_.environment.capacity_changed();
    };
    image_watch_ = context_.environment.records.images.OnChange(std::move(on_change));
  }

  Task<> DeleteMachine(NodeId id, Node node) {
    WorkCount::Piece work(context_.work);
    co_await DeleteMachineOf(context_.loop(), *context_.adapter, *context_.config, std::move(id), node);
  }

  ProviderParts context_;
  LeakCleanup leaks_;
  MissingMachines missing_;
  AccessRenewal renewal_;
  ReadyChecks ready_checks_;
  std::set<LabelKey> ready_labels_;  // in the last check
  SecondLook second_look_{context_.loop(), [this] { return LookNow(); }};
  Subscription image_watch_;
};

}  // namespace

std::unique_ptr<Provider> MakeCloudProvider(ProviderEnvironment environment,
                                            std::shared_ptr<const ProviderConfig> config,
                                            const MakeAdapter& make, HostKeyScan scan) {
  return std::make_unique<CloudProvider>(std::move(environment), std::move(config), make, std::move(scan));
}

namespace {

MakeAdapter AdapterOf(CloudDriver& driver, std::shared_ptr<const ProviderConfig> config) {
  return [&driver, config](const AdapterEnvironment& environment) {
    std::unique_ptr<Adapter> adapter = driver.CreateAdapter(environment, config);
    if (!adapter) throw Error(Verdict::kFail, "driver " + config->driver + " makes no adapter");
    return adapter;
  };
}

}  // namespace

std::unique_ptr<Provider> CloudDriver::CreateProvider(ProviderEnvironment environment,
                                                      std::shared_ptr<const ProviderConfig> config) {
  HostKeyScan scan = reports_host_keys() ? nullptr : NetworkScan(environment);
  return MakeCloudProvider(std::move(environment), config, AdapterOf(*this, config), std::move(scan));
}

std::unique_ptr<ImageStore> CloudDriver::CreateImageStore(DriverEnvironment environment,
                                                          std::shared_ptr<const ProviderConfig> config) {
  return std::make_unique<CloudImages>(environment, config, AdapterOf(*this, config));
}

std::unique_ptr<OperatorTools> CloudDriver::CreateOperatorTools(
    ToolsEnvironment environment, std::shared_ptr<const ProviderConfig> config) {
  return std::make_unique<CloudTools>(environment, config, AdapterOf(*this, config));
}

HostKeyScan NetworkScan(const DriverEnvironment& environment) {
  auto scanner = std::make_shared<net::HostKeyScanner>(environment.loop, environment.blocking_pool);
  return [scanner](std::string host, int port, bool wants_keys, SteadyTime deadline) {
    return scanner->Scan(std::move(host), port, wants_keys, deadline);
  };
}

std::unique_ptr<Adapter> HttpDriver::CreateAdapter(const AdapterEnvironment& environment,
                                                   std::shared_ptr<const ProviderConfig> config) {
  auto client = std::make_unique<net::CurlClient>(environment.loop, environment.blocking_pool,
                                                  "nodepool/" + std::string(Version()));
  return parts_.make(environment, std::move(config), variables_ ? *variables_ : process::OwnEnvironment(),
                     std::move(client));
}

}  // namespace nodepool::driver::cloud
