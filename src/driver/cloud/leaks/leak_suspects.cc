#include "driver/cloud/leaks/leak_suspects.h"

#include <map>
#include <set>

namespace nodepool::driver::cloud {

namespace {

using NodeAndType = std::pair<NodeId, std::string>;

std::string UploadName(const BuildId& build, const UploadId& upload) {
  return build.str() + "-" + upload.str();
}

struct Uploads {
  std::set<std::string> names;
  std::set<std::string> images;              // external ids
  std::map<std::string, std::string> ready;  // external ids, by name
};

Uploads UploadsOf(const store::ImageCache& cache, const ProviderName& provider) {
  Uploads uploads;
  for (const auto& [key, upload] : cache.uploads()) {
    if (key.provider != provider) continue;
    // Nothing of it should be in the cloud; its record stays to say why it failed.
    bool has_ended = upload.record.state == ImageState::kFailed && !upload.record.external_id;
    if (!has_ended) uploads.names.insert(UploadName(key.build.build, key.upload));
    if (!upload.record.external_id) continue;
    uploads.images.insert(*upload.record.external_id);
    if (upload.record.state == ImageState::kReady)
      uploads.ready[UploadName(key.build.build, key.upload)] = *upload.record.external_id;
  }
  return uploads;
}

// The current machines of living nodes in the list.
std::set<NodeAndType> CurrentMachines(const std::vector<Resource>& resources, const store::NodeCache& nodes) {
  std::set<NodeAndType> current;
  for (const Resource& resource : resources) {
    Owner owner = OwnerOf(resource.metadata);
    const store::StoredNode* node = owner.node ? nodes.Find(*owner.node) : nullptr;
    if (node != nullptr && Names(node->record.external_id, resource.id))
      current.emplace(*owner.node, resource.type);
  }
  return current;
}

// The missing record of a node's resource; empty: none is missing.
std::string MissingNode(const Resource& resource, const Owner& owner, const ProviderName& provider,
                        const store::NodeCache& nodes, const std::set<NodeAndType>& current) {
  const store::StoredNode* node = nodes.Find(*owner.node);
  if (node == nullptr || node->record.provider != provider) return "node " + owner.node->str();
  bool is_another =
      current.contains({*owner.node, resource.type}) && !Names(node->record.external_id, resource.id);
  return is_another ? "node " + owner.node->str() + " with this machine" : "";
}

// An upload of a Python builder may use the image of an earlier one with the same contents.
std::string MissingUpload(const Resource& resource, const Owner& owner, const Uploads& uploads) {
  std::string name = UploadName(*owner.build, *owner.upload);
  bool is_known = uploads.images.contains(resource.id) || uploads.names.contains(name);
  return is_known ? "" : "upload " + name;
}

// Images in the list that records of ready uploads name: their type, by the attempt's mark.
std::map<std::string, std::string> ImagesInUse(const std::vector<Resource>& resources,
                                               const Uploads& uploads) {
  std::map<std::string, std::string> types;
  for (const Resource& resource : resources) {
    Owner owner = OwnerOf(resource.metadata);
    if (owner.attempt.empty() || !IsUploaded(owner)) continue;
    auto named = uploads.ready.find(UploadName(*owner.build, *owner.upload));
    if (named != uploads.ready.end() && named->second == resource.id) types[owner.attempt] = resource.type;
  }
  return types;
}

bool IsTwin(const Resource& resource, const Owner& owner, const Uploads& uploads,
            const std::map<std::string, std::string>& in_use) {
  auto type = in_use.find(owner.attempt);
  return type != in_use.end() && type->second == resource.type && !uploads.images.contains(resource.id);
}

}  // namespace

bool IsUploaded(const Owner& owner) { return !owner.node && owner.build && owner.upload; }

std::vector<Suspect> FindSuspects(const std::vector<Resource>& resources, const ProviderName& provider,
                                  const store::NodeCache& nodes, const store::ImageCache& images) {
  Uploads uploads = UploadsOf(images, provider);
  std::set<NodeAndType> current = CurrentMachines(resources, nodes);
  std::map<std::string, std::string> in_use = ImagesInUse(resources, uploads);
  std::vector<Suspect> suspects;
  for (const Resource& resource : resources) {
    Owner owner = OwnerOf(resource.metadata);
    if (owner.provider != provider.str()) continue;
    std::string missing;
    if (owner.node) missing = MissingNode(resource, owner, provider, nodes, current);
    if (IsUploaded(owner)) missing = MissingUpload(resource, owner, uploads);
    bool is_twin = missing.empty() && IsUploaded(owner) && IsTwin(resource, owner, uploads, in_use);
    if (is_twin) missing = "upload " + UploadName(*owner.build, *owner.upload) + " with this image";
    if (!missing.empty()) suspects.push_back({resource, std::move(owner), std::move(missing), is_twin});
  }
  return suspects;
}

}  // namespace nodepool::driver::cloud
