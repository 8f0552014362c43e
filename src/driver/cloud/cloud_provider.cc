#include "driver/cloud/cloud_provider.h"

#include <set>

#include "async/attempt.h"
#include "async/deadline.h"
#include "driver/cloud/access_renewal.h"
#include "driver/cloud/leak_cleanup.h"
#include "driver/cloud/metadata.h"
#include "driver/cloud/missing_machines.h"
#include "driver/cloud/progress.h"
#include "driver/cloud/provider_parts.h"
#include "driver/cloud/request_handler.h"
#include "driver/cloud/second_look.h"
#include "driver/records_environment.h"

namespace nodepool::driver::cloud {

namespace {

constexpr Duration kDeleteLimit = std::chrono::seconds(600);
constexpr Duration kLookLimit = std::chrono::seconds(30);

class CloudProvider : public Provider {
 public:
  CloudProvider(ProviderEnvironment environment, std::shared_ptr<const ProviderConfig> config,
                std::unique_ptr<Adapter> adapter, HostKeyScan scan)
      : context_(std::move(environment), std::move(config), std::move(adapter), std::move(scan)),
        leaks_(context_.environment, *context_.adapter, *context_.config),
        missing_(context_.environment, *context_.adapter, *context_.config),
        renewal_(context_.environment, *context_.adapter, *context_.config) {
    context_.adapter->machines_taken = [this] { missing_.Announce(); };
    context_.adapter->quota_changed = [this] { context_.quota.Announce(); };
    context_.adapter->needs_changed = [this] { context_.needs.Clear(); };
  }

  const ProviderConfig& config() const override { return *context_.config; }

  Task<> Start() override {
    FollowImages();
    context_.background.Spawn("quota of " + context_.config->name.str(), context_.quota.Run());
    context_.background.Spawn("missing machines of " + context_.config->name.str(),
                              missing_.FollowAnnouncements());
    co_await context_.quota.WaitForFirstTry();
  }

  Task<> Stop() override {
    image_watch_.Reset();
    context_.quota.EndWaits();
    co_await context_.WaitIdle();
    co_await context_.background.Stop();
    co_await context_.adapter->Stop();
  }

  Readiness LabelReady(const LabelConfig& label) override {
    if (context_.needs.IsInError(label)) return Readiness::kNotReady;
    if (label.diskimage) return context_.Image(label) ? Readiness::kReady : Readiness::kNotReady;
    return context_.adapter->LabelReady(label);
  }

  QuotaInformation AvailableQuota() override { return context_.quota.available(); }
  QuotaInformation UsedByOthers() override { return context_.quota.used_by_others(); }
  bool waits_for_others() const override { return context_.quota.follows_others(); }
  QuotaInformation QuotaForLabel(const LabelConfig& label) override { return context_.needs.For(label); }
  Task<> LookAgain() override {
    ProviderParts::Work work(context_);
    co_await second_look_.Take();
  }
  void InvalidateQuota() override { context_.quota.Invalidate(); }

  std::unique_ptr<NodeRequestHandler> RequestHandler(std::shared_ptr<const PoolConfig> pool,
                                                     const store::StoredRequest& request) override {
    return std::make_unique<cloud::RequestHandler>(context_, std::move(pool), request);
  }

  Task<> DeleteResources(const NodeId& id, const Node& node) override {
    auto pool = context_.config->pools.find(node.pool);
    return DeleteMachine(id, node.external_id, pool == context_.config->pools.end() ? nullptr : pool->second);
  }

  Task<std::string> UploadImage(ImageUploadParameters upload) override {
    ProviderParts::Work in_use(context_);
    upload.metadata[kProviderKey] = context_.config->name.str();
    SteadyTime deadline = context_.loop().SteadyNow() + upload.timeout;
    Task<std::string> work = context_.adapter->UploadImage(std::move(upload));
    co_return co_await WithDeadline(context_.loop(), deadline, "uploading the image", std::move(work));
  }

  Task<> DeleteImage(std::string external_id) override {
    ProviderParts::Work work(context_);
    SteadyTime deadline = context_.loop().SteadyNow() + kDeleteLimit;
    Task<> deletion = context_.adapter->DeleteImage(std::move(external_id));
    co_await EnsureGone(WithDeadline(context_.loop(), deadline, "deleting the image", std::move(deletion)));
  }

  Task<std::vector<ListedMachine>> ListMachines() override {
    ProviderParts::Work work(context_);
    std::vector<Instance> instances = co_await context_.adapter->ListInstances();
    std::vector<ListedMachine> machines;
    for (Instance& instance : instances) {
      ListedMachine machine;
      machine.name = std::move(instance.name);
      machine.id = ToText(instance.external_id);
      machine.address = instance.public_ipv4.value_or("");
      machine.metadata = std::move(instance.metadata);
      machines.push_back(std::move(machine));
    }
    co_return machines;
  }

  Task<std::vector<ListedImage>> ListImages() override {
    ProviderParts::Work work(context_);
    std::vector<ListedImage> images = co_await context_.adapter->ListImages();
    co_return images;
  }

  Task<std::vector<std::string>> FindFaults() override {
    ProviderParts::Work work(context_);
    std::vector<std::string> faults = co_await context_.adapter->FindFaults(*context_.config);
    co_return faults;
  }

  Task<> CleanupLeakedResources() override {
    if (!context_.quota.is_known()) co_return;  // the cloud was not reached yet
    ProviderParts::Work work(context_);
    DetectLabelChanges();
    Outcome<bool> has_deleted = co_await Attempt(leaks_.Run());
    // After a failure, reading the quota shows whether the cloud can be used.
    if (!has_deleted || *has_deleted) context_.quota.Invalidate();
    if (!has_deleted) has_deleted.error().Rethrow();
    co_await missing_.Check();
    co_await renewal_.Run();
  }

 private:
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

  Task<> DeleteMachine(NodeId id, boost::json::value external_id, std::shared_ptr<const PoolConfig> pool) {
    ProviderParts::Work work(context_);
    bool is_empty = external_id.is_null() || (external_id.is_string() && external_id.as_string().empty());
    if (is_empty) co_return;
    log::Logger logger("nodepool.StateMachineNodeDeleter." + context_.config->name.value);
    Progress machine(logger.About({"", "", id.str()}), 1, std::move(pool));
    SteadyTime deadline = context_.loop().SteadyNow() + kDeleteLimit;
    Task<> deletion = context_.adapter->Delete(machine, std::move(external_id));
    co_await EnsureGone(WithDeadline(context_.loop(), deadline, "deleting the machine", std::move(deletion)));
  }

  ProviderParts context_;
  LeakCleanup leaks_;
  MissingMachines missing_;
  AccessRenewal renewal_;
  std::set<LabelKey> ready_labels_;  // in the last check
  SecondLook second_look_{context_.loop(), [this] { return LookNow(); }};
  Subscription image_watch_;
};

}  // namespace

std::unique_ptr<Provider> MakeCloudProvider(ProviderEnvironment environment,
                                            std::shared_ptr<const ProviderConfig> config,
                                            std::unique_ptr<Adapter> adapter, HostKeyScan scan) {
  return std::make_unique<CloudProvider>(std::move(environment), std::move(config), std::move(adapter),
                                         std::move(scan));
}

}  // namespace nodepool::driver::cloud
