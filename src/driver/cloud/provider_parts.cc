#include "driver/cloud/provider_parts.h"

#include "driver/records_environment.h"
#include "model/validation.h"

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

}  // namespace nodepool::driver::cloud
