#include "web/live/entries.h"

#include "web/api/api_fields.h"
#include "web/requests/lease_fields.h"

namespace nodepool::web {

std::optional<std::string> NodeEntry(const launcher::Launcher& launcher, const NodeId& id) {
  const store::StoredNode* node = launcher.records().nodes.Find(id);
  if (node == nullptr) return std::nullopt;
  return NodeFields().WithTimes(*node);
}

std::optional<std::string> RequestEntry(const launcher::Launcher& launcher, const RequestId& id) {
  std::optional<launcher::RequestStatus> status = launcher.FindRequest(id);
  if (!status) return std::nullopt;
  return RequestFields().WithTimes(*status);
}

std::optional<std::string> EntryOfImage(const launcher::Launcher& launcher, const ImageName& name) {
  launcher::Records records = launcher.records();
  if (!records.images.images().contains(name)) return std::nullopt;
  return ImageFields().WithTimes(ImageEntry{records.images, name, launcher.NextBuild(name)});
}

std::string LeaseEntryFor(const launcher::Launcher& launcher, const store::StoredLease& lease,
                          bool is_client) {
  return boost::json::serialize(LeaseFields().ToJson({lease, launcher, is_client}));
}

Published::Entries BuildEntries(const launcher::Records& records, const ImageName& image) {
  Published::Entries entries;
  const auto& builds = records.images.builds();
  for (auto it = builds.lower_bound({image, BuildId()}); it != builds.end() && it->first.image == image;
       ++it) {
    entries[image.value + "/" + it->first.build.value] = BuildFields().WithTimes(it->second);
  }
  return entries;
}

Published::Entries UploadEntries(const launcher::Records& records, const ImageName& image) {
  Published::Entries entries;
  const auto& uploads = records.images.uploads();
  auto it = uploads.lower_bound({{image, BuildId()}, ProviderName(), UploadId()});
  for (; it != uploads.end() && it->first.build.image == image; ++it) {
    const store::UploadKey& key = it->first;
    std::string path =
        image.value + "/" + key.build.build.value + "/" + key.provider.value + "/" + key.upload.value;
    entries[std::move(path)] = UploadFields().WithTimes(it->second);
  }
  return entries;
}

Published::Entries ProviderEntries(const launcher::Launcher& launcher) {
  Published::Entries entries;
  for (launcher::ProviderStatus& provider : launcher.Providers()) {
    provider.next_start.reset();
    entries[provider.name.value] = ProviderFields().WithTimes(provider);
  }
  return entries;
}

Published::Entries ComponentEntries(const launcher::Records& records) {
  Published::Entries entries;
  for (const ComponentEntry& component : records.components.all()) {
    entries[component.first] = ComponentFields().WithTimes(component);
  }
  return entries;
}

Published::Entries JobEntries(const launcher::Records& records) {
  Published::Entries entries;
  for (const auto& [id, rule] : records.jobs.rules()) {
    entries[id.value] = JobFields().WithTimes({rule, records.nodes, records.jobs});
  }
  return entries;
}

}  // namespace nodepool::web
