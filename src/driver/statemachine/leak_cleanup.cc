#include "driver/statemachine/leak_cleanup.h"

#include "async/deadline.h"
#include "driver/statemachine/check_instance.h"
#include "driver/statemachine/metadata.h"

namespace nodepool::driver::statemachine {

namespace {

constexpr Duration kCallLimit = std::chrono::seconds(120);

std::string UploadName(const BuildId& build, const UploadId& upload) {
  return build.str() + "-" + upload.str();
}

// The current machines of living nodes that the list shows, by node and type.
std::set<std::pair<NodeId, std::string>> CurrentMachines(const std::vector<Resource>& resources,
                                                         const store::NodeCache& nodes) {
  std::set<std::pair<NodeId, std::string>> current;
  for (const Resource& resource : resources) {
    Owner owner = OwnerOf(resource.metadata);
    const store::StoredNode* node = owner.node ? nodes.Find(*owner.node) : nullptr;
    if (node == nullptr || !node->record.external_id.is_string()) continue;
    if (std::string_view(node->record.external_id.as_string()) == resource.id) {
      current.emplace(*owner.node, resource.type);
    }
  }
  return current;
}

}  // namespace

LeakCleanup::LeakCleanup(Loop& loop, Adapter& adapter, ProviderName provider, const store::NodeCache& nodes,
                         const store::ImageCache& images, ProviderObserver* observer)
    : loop_(loop),
      adapter_(adapter),
      provider_(std::move(provider)),
      nodes_(nodes),
      images_(images),
      observer_(observer) {}

Task<bool> LeakCleanup::Run() {
  // An incomplete cache would make everything look leaked.
  if (!nodes_.synced() || !images_.synced()) co_return false;
  SteadyTime deadline = loop_.SteadyNow() + kCallLimit;
  std::vector<Resource> resources =
      co_await WithDeadline(loop_, deadline, "listing resources", adapter_.ListResources());
  for (const Resource& resource : resources) CheckResource(resource);
  if (!nodes_.synced() || !images_.synced()) co_return false;

  std::set<Suspect> suspects = FindSuspects(resources);
  std::set<Suspect> leaked;
  for (const Suspect& suspect : suspects) {
    if (suspects_.contains(suspect)) leaked.insert(suspect);
  }
  suspects_ = std::move(suspects);

  LeakTally tally(observer_, provider_);
  for (const Resource& resource : resources) {
    auto found = leaked.lower_bound({resource.type, resource.id, ""});
    if (found == leaked.end() || std::get<0>(*found) != resource.type || std::get<1>(*found) != resource.id)
      continue;
    logger_.Warning("Deleting {} {} of provider {}, which leaked: there is no {}", resource.type, resource.id,
                    provider_, std::get<2>(*found));
    co_await Delete(resource, tally);
  }
  co_return !tally.is_empty();
}

std::set<LeakCleanup::Suspect> LeakCleanup::FindSuspects(const std::vector<Resource>& resources) const {
  std::set<std::string> uploads;
  std::set<std::string> used_images;
  for (const auto& [key, upload] : images_.uploads()) {
    if (key.provider != provider_) continue;
    uploads.insert(UploadName(key.build.build, key.upload));
    if (upload.record.external_id) used_images.insert(*upload.record.external_id);
  }
  auto current_machines = CurrentMachines(resources, nodes_);

  std::set<Suspect> suspects;
  for (const Resource& resource : resources) {
    Owner owner = OwnerOf(resource.metadata);
    if (owner.provider != provider_.str()) continue;
    if (owner.node) {
      const store::StoredNode* node = nodes_.Find(*owner.node);
      bool is_known = node != nullptr && node->record.provider == provider_;
      if (!is_known) {
        suspects.emplace(resource.type, resource.id, "node " + owner.node->str());
      } else if (current_machines.contains({*owner.node, resource.type}) &&
                 node->record.external_id != boost::json::value(resource.id)) {
        suspects.emplace(resource.type, resource.id, "node whose machine it is: " + owner.node->str());
      }
    }
    // A later upload may have found the image of an earlier one, with the same contents.
    if (owner.build && owner.upload && !used_images.contains(resource.id)) {
      std::string name = UploadName(*owner.build, *owner.upload);
      if (!uploads.contains(name)) suspects.emplace(resource.type, resource.id, "upload " + name);
    }
  }
  return suspects;
}

Task<> LeakCleanup::Delete(Resource resource, LeakTally& tally) {
  std::string kind = resource.plural_metric_name();
  std::string what = "deleting leaked " + resource.type + " " + resource.id;
  SteadyTime deadline = loop_.SteadyNow() + kCallLimit;
  try {
    co_await WithDeadline(loop_, deadline, what, adapter_.DeleteResource(std::move(resource)));
  } catch (...) {
    std::exception_ptr error = std::current_exception();
    if (VerdictOf(error) == Verdict::kCancelled) throw;
    if (VerdictOf(error) == Verdict::kNotFound) co_return;
    logger_.Error("{} in provider {} failed; it is tried again at the next look: {}", what, provider_,
                  MessageOf(error));
    co_return;
  }
  tally.Add(kind);
}

}  // namespace nodepool::driver::statemachine
