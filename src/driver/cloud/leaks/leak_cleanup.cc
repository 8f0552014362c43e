#include "driver/cloud/leaks/leak_cleanup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "async/deadline.h"
#include "async/task.h"
#include "driver/cloud/launch/machine_start.h"
#include "driver/records_environment.h"
#include "store/whole_tree.h"

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

namespace {

constexpr Duration kCallLimit = std::chrono::seconds(120);
constexpr std::size_t kIdsInLog = 5;

using ByKind = std::map<std::string, std::vector<std::string>>;  // ids

// "2 images (a, b), 7 volumes (c, d, e, f, g, ...)"
std::string Describe(const ByKind& kinds) {
  std::vector<std::string> texts;
  for (const auto& [kind, ids] : kinds) {
    std::size_t shown = std::min(ids.size(), kIdsInLog);
    texts.push_back(fmt::format("{} {} ({}{})", ids.size(), kind,
                                fmt::join(ids.begin(), ids.begin() + std::ptrdiff_t(shown), ", "),
                                ids.size() > shown ? ", ..." : ""));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string OfUnknown(const ByKind& kinds, const ProviderConfig& config) {
  return fmt::format(
      "{} of provider {} have our mark, but no record of them was ever removed here: they may be of a tree "
      "that was lost, and stay. nodepool alien-image-list {} shows images; delete in the cloud what nobody "
      "needs",
      Describe(kinds), config.name, config.name);
}

std::string OfTooMany(const ByKind& kinds, const ProviderConfig& config) {
  return fmt::format(
      "{} of provider {} have no record any more, more than {} % of what was uploaded: none of them is "
      "deleted. nodepool alien-image-list {} shows images; max-leaked-share: 100 in the provider's section "
      "allows their deletion, if they are not needed",
      Describe(kinds), config.name, config.max_leaked_share, config.name);
}

std::map<std::string, std::size_t> CountUploaded(const std::vector<Resource>& resources,
                                                 const ProviderName& provider) {
  std::map<std::string, std::size_t> counts;
  for (const Resource& resource : resources) {
    Owner owner = OwnerOf(resource.metadata);
    if (owner.provider == provider.str() && IsUploaded(owner)) ++counts[resource.plural_metric_name()];
  }
  return counts;
}

}  // namespace

Task<bool> LeakCleanup::Run() {
  // With incomplete caches everything would look leaked.
  if (!AreRecordsKnown()) co_return false;
  SteadyTime deadline = environment_.loop.SteadyNow() + kCallLimit;
  std::vector<Resource> resources =
      co_await WithDeadline(environment_.loop, deadline, "listing resources", adapter_.ListResources());
  for (const Resource& resource : resources) CheckResource(resource);
  if (!AreRecordsKnown()) co_return false;

  std::vector<Suspect> leaked = SeenAgain(
      FindSuspects(resources, config_.name, environment_.records.nodes, environment_.records.images));
  leaked = co_await OnceKnown(std::move(leaked));
  leaked = WithinShare(std::move(leaked), resources);
  LeakTally tally(environment_.observer, config_.name);
  bool is_any_gone = false;
  for (Suspect& suspect : leaked) {
    bool is_gone = co_await Delete(std::move(suspect), tally);
    is_any_gone = is_any_gone || is_gone;
  }
  co_return is_any_gone;
}

bool LeakCleanup::AreRecordsKnown() const {
  return environment_.records.nodes.synced() && environment_.records.images.synced();
}

std::vector<Suspect> LeakCleanup::SeenAgain(std::vector<Suspect> suspects) {
  auto before = std::exchange(suspects_, {});
  for (const Suspect& suspect : suspects) suspects_.insert(suspect.key());
  std::erase_if(suspects, [&](const Suspect& suspect) { return !before.contains(suspect.key()); });
  return suspects;
}

Task<std::vector<Suspect>> LeakCleanup::OnceKnown(std::vector<Suspect> leaked) {
  std::vector<Suspect> known;
  ByKind unknown;
  for (Suspect& suspect : leaked) {
    bool was_known = co_await WasKnown(suspect);
    if (was_known) {
      known.push_back(std::move(suspect));
    } else {
      unknown[suspect.resource.plural_metric_name()].push_back(suspect.resource.id);
    }
  }
  SayOnce(said_of_unknown_, unknown.empty() ? "" : OfUnknown(unknown, config_));
  co_return known;
}

Task<bool> LeakCleanup::WasKnown(const Suspect& suspect) {
  const Owner& owner = suspect.owner;
  if (suspect.is_twin) co_return true;
  if (IsUploaded(owner)) {
    co_return co_await store::WasUploadRemoved(environment_.records.store, environment_.records.images,
                                               *owner.build, config_.name, *owner.upload);
  }
  if (!suspect.resource.outlives_machine) co_return true;
  co_return co_await store::WasNodeRemoved(environment_.records.store, *owner.node);
}

std::vector<Suspect> LeakCleanup::WithinShare(std::vector<Suspect> leaked,
                                              const std::vector<Resource>& resources) {
  std::map<std::string, std::size_t> uploaded = CountUploaded(resources, config_.name);
  ByKind too_many;
  for (const Suspect& suspect : leaked) {
    std::string kind = suspect.resource.plural_metric_name();
    if (IsUploaded(suspect.owner)) too_many[kind].push_back(suspect.resource.id);
  }
  std::erase_if(too_many, [&](const auto& entry) {
    const auto& [kind, ids] = entry;
    return ids.size() <= MaxLeaked(uploaded[kind], config_.max_leaked_share);
  });
  std::erase_if(leaked, [&](const Suspect& suspect) {
    return IsUploaded(suspect.owner) && too_many.contains(suspect.resource.plural_metric_name());
  });
  SayOnce(said_of_share_, too_many.empty() ? "" : OfTooMany(too_many, config_));
  return leaked;
}

// Whether it is gone: deleted now, or meanwhile by the cloud.
Task<bool> LeakCleanup::Delete(Suspect suspect, LeakTally& tally) {
  std::string kind = suspect.resource.plural_metric_name();
  std::string what = fmt::format("leaked {} {}", suspect.resource.type, suspect.resource.id);
  logger_.Warning("Deleting {} of provider {}: no record of {}", what, config_.name, suspect.missing);
  SteadyTime deadline = environment_.loop.SteadyNow() + kCallLimit;
  Task<> deletion = adapter_.DeleteResource(std::move(suspect.resource));
  Outcome<> deleted =
      co_await Attempt(WithDeadline(environment_.loop, deadline, "deleting " + what, std::move(deletion)));
  if (deleted) tally.Add(kind);
  if (deleted || FailedWith(deleted, Verdict::kNotFound)) co_return true;
  logger_.Error("Deleting {} of provider {} failed; it is tried again in the next sweep: {}", what,
                config_.name, deleted.error().message());
  co_return false;
}

void LeakCleanup::SayOnce(std::string& said, std::string text) {
  if (text != said && !text.empty()) logger_.Warning("{}", text);
  said = std::move(text);
}

std::size_t MaxLeaked(std::size_t all, int share) {
  return share == 0 ? 0 : std::max<std::size_t>(1, all * static_cast<std::size_t>(share) / 100);
}

}  // namespace nodepool::driver::cloud
