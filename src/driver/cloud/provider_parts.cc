#include "driver/cloud/provider_parts.h"

#include "async/deadline.h"
#include "driver/cloud/metadata.h"
#include "driver/records_environment.h"
#include "model/image.h"

namespace nodepool::driver::cloud {

ProviderParts::ProviderParts(ProviderEnvironment provider_environment,
                             std::shared_ptr<const ProviderConfig> provider_config, Framework& framework,
                             const MakeAdapter& make, HostKeyScan key_scan)
    : environment(std::move(provider_environment)),
      config(std::move(provider_config)),
      adapter(make({environment, framework, environment.observer})),
      scan(std::move(key_scan)),
      background(environment.loop, log::Logger("nodepool.StateMachineProvider." + config->name.value)),
      needs(background, *adapter, environment.capacity_changed),
      quota(environment, *adapter, config->name) {}

const store::StoredUpload* ProviderParts::Image(const LabelConfig& label) const {
  if (!label.diskimage) return nullptr;
  return environment.records.images.NewestReadyUpload(*label.diskimage, config->name);
}

const store::StoredUpload* ProviderParts::Image(const LabelConfig& label, const NodeRequest& request) const {
  if (!label.diskimage || !IsValidationLabel(label.name)) return Image(label);
  std::optional<UploadToValidate> wanted = UploadToValidateBy(request);
  if (!wanted) return nullptr;
  const auto& uploads = environment.records.images.uploads();
  auto found = uploads.find({{*label.diskimage, wanted->build}, config->name, wanted->upload});
  bool is_there = found != uploads.end() && found->second.record.state == ImageState::kUploading &&
                  found->second.record.external_id;
  return is_there ? &found->second : nullptr;
}

namespace {

constexpr Duration kDeleteLimit = std::chrono::seconds(600);

ListedMachine Listed(Instance instance) {
  ListedMachine machine;
  machine.name = std::move(instance.name);
  machine.id = ToText(instance.external_id);
  machine.address = instance.public_ipv4.value_or("");
  machine.metadata = std::move(instance.metadata);
  return machine;
}

}  // namespace

UnstartedAdapter::UnstartedAdapter(const DriverEnvironment& environment, const MakeAdapter& make)
    : adapter_(make({environment, framework_})) {}

CloudImages::CloudImages(const DriverEnvironment& environment, std::shared_ptr<const ProviderConfig> config,
                         const MakeAdapter& make)
    : loop_(environment.loop), config_(std::move(config)), adapter_(environment, make) {}

Task<std::string> CloudImages::UploadImage(ImageUploadParameters upload) {
  WorkCount::Piece work(work_);
  upload.metadata[kProviderKey] = config_->name.str();
  SteadyTime deadline = loop_.SteadyNow() + upload.timeout;
  Task<std::string> sending = adapter_->UploadImage(std::move(upload));
  std::string id = co_await WithDeadline(loop_, deadline, "uploading the image", std::move(sending));
  if (id.empty()) throw Error(Verdict::kFail, "the driver returned no id for the uploaded image");
  co_return id;
}

Task<> CloudImages::DeleteImage(std::string external_id) {
  WorkCount::Piece work(work_);
  SteadyTime deadline = loop_.SteadyNow() + kDeleteLimit;
  Task<> deletion = adapter_->DeleteImage(std::move(external_id));
  co_await EnsureGone(WithDeadline(loop_, deadline, "deleting the image", std::move(deletion)));
}

Task<> CloudImages::Stop() {
  co_await work_.WaitIdle();
  co_await adapter_->Stop();
}

CloudTools::CloudTools(const DriverEnvironment& environment, std::shared_ptr<const ProviderConfig> config,
                       const MakeAdapter& make)
    : loop_(environment.loop), config_(std::move(config)), adapter_(environment, make) {}

Task<std::vector<ListedMachine>> CloudTools::ListMachines() {
  std::vector<Instance> instances = co_await adapter_->ListInstances();
  std::vector<ListedMachine> machines;
  for (Instance& instance : instances) machines.push_back(Listed(std::move(instance)));
  co_return machines;
}

Task<std::vector<ListedImage>> CloudTools::ListImages() {
  std::vector<ListedImage> images = co_await adapter_->ListImages();
  co_return images;
}

Task<std::vector<std::string>> CloudTools::FindFaults() {
  std::vector<std::string> faults = co_await adapter_->FindFaults(*config_);
  co_return faults;
}

Task<> CloudTools::DeleteResources(const NodeId& id, const Node& node) {
  return DeleteMachineOf(loop_, *adapter_, *config_, id, node);
}

Task<> CloudTools::Stop() { co_await adapter_->Stop(); }

namespace {

Task<> DeleteMachine(Loop& loop, Adapter& adapter, ProviderName provider, NodeId id,
                     boost::json::value external_id, std::shared_ptr<const PoolConfig> pool) {
  bool is_empty = external_id.is_null() || (external_id.is_string() && external_id.as_string().empty());
  if (is_empty) co_return;
  log::Logger logger("nodepool.StateMachineNodeDeleter." + provider.value);
  Progress machine(logger.About(log::OfNode(id)), 1, std::move(pool));
  SteadyTime deadline = loop.SteadyNow() + kDeleteLimit;
  Task<> deletion = adapter.Delete(machine, std::move(external_id));
  co_await EnsureGone(WithDeadline(loop, deadline, "deleting the machine", std::move(deletion)));
}

}  // namespace

Task<> DeleteMachineOf(Loop& loop, Adapter& adapter, const ProviderConfig& config, NodeId id,
                       const Node& node) {
  auto pool = config.pools.find(node.pool);
  return DeleteMachine(loop, adapter, config.name, std::move(id), node.external_id,
                       pool == config.pools.end() ? nullptr : pool->second);
}

}  // namespace nodepool::driver::cloud
