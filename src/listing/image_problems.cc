#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "listing/image_listing.h"
#include "listing/provider_listing.h"
#include "listing/status.h"

namespace nodepool::listing {

namespace {

using Severity = Problem::Severity;

template <class Ids>
std::string NamesOf(const Ids& ids) {
  std::vector<std::string> names;
  for (const auto& id : ids) names.push_back(id.value);
  return Join(names, ", ");
}

std::string WantedBy(const ImageHealth& health) {
  return health.labels.empty() ? "" : "; wanted by " + NamesOf(health.labels);
}

// Where it is missing, and whom that concerns.
std::string Missing(const ImageHealth& health) {
  return (health.missing.empty() ? "" : "; no upload in " + NamesOf(health.missing)) + WantedBy(health);
}

Problem Of(const ImageName& image, std::string_view kind, Severity severity, std::string text,
           std::string remedy) {
  return {.kind = kind,
          .name = image.value,
          .severity = severity,
          .subject = {"images", image.value},
          .text = fmt::format("Image {}: {}", image, text),
          .remedy = std::move(remedy)};
}

// The labels that boot from it, where it is missing.
std::vector<Problem::Place> StoppedIn(const std::vector<ProviderName>& missing,
                                      const ConfiguredImage& image) {
  std::vector<Problem::Place> stopped;
  for (const ProviderName& provider : missing) {
    for (const LabelName& label : image.labels.at(provider))
      stopped.push_back({.provider = provider, .label = label});
  }
  return stopped;
}

Problem FailedBuild(const ImageName& image, const ImageHealth& health) {
  const ImageBuild& build = health.failed->record;
  Problem problem = Of(image, "image-build-failed", Severity::kBad,
                       "its last build failed" + FailureOf(health) +
                           (health.made ? "" : "; no build is ready") + Missing(health),
                       fmt::format("Read the end of its log, then nodepool image-build {}", image));
  problem.since = build.state_time;
  return problem;
}

Problem OldBuild(const ImageName& image, WallTime made, Duration rebuild_age, WallTime now) {
  Problem problem =
      Of(image, "image-too-old", Severity::kBad, fmt::format("it is {} old", FormatAge(now - made)),
         fmt::format("The builder's log says why; nodepool image-build {} asks for a build", image));
  problem.since = made + rebuild_age;
  return problem;
}

void AddBuild(Problems& out, const ImageName& image, const ConfiguredImage& configured,
              const ImageHealth& health, WallTime now) {
  if (health.failed != nullptr) {
    out.push_back(FailedBuild(image, health));
  } else if (!health.made) {
    out.push_back(Of(image, "image-not-built", Severity::kWait, "no build is ready" + Missing(health),
                     "Wait for the builder; its log says what it does"));
  } else if (health.is_old) {
    out.push_back(OldBuild(image, *health.made, configured.rebuild_age, now));
    return;
  } else {
    return;
  }
  out.back().stops = StoppedIn(health.missing, configured);
}

Problem FailedUpload(const ImageName& image, const ConfiguredImage& configured, const ImageHealth& health,
                     const store::StoredUpload& upload) {
  const ProviderName& provider = upload.id.provider;
  bool is_missing = std::ranges::find(health.missing, provider) != health.missing.end();
  Problem problem =
      Of(image, "image-upload-failed", Severity::kBad,
         UploadFailure(provider, upload) + (is_missing ? WantedBy(health) : ""),
         fmt::format("The builder's log says why; nodepool image-upload-retry {} {} tries again", provider,
                     image));
  problem.name = fmt::format("{}/{}", image, provider);
  problem.since = upload.record.state_time;
  if (is_missing) problem.stops = StoppedIn({provider}, configured);
  return problem;
}

void AddUploads(Problems& out, const ImageName& image, const ConfiguredImage& configured,
                const ImageHealth& health) {
  for (const auto& [provider, upload] : health.failed_uploads)
    out.push_back(FailedUpload(image, configured, health, *upload));
  std::vector<ProviderName> missing = health.missing;
  std::erase_if(missing, [&](const ProviderName& name) { return health.failed_uploads.contains(name); });
  bool is_named_with_build = health.failed != nullptr || !health.made;
  if (missing.empty() || is_named_with_build) return;
  out.push_back(Of(image, "image-not-uploaded", Severity::kWait,
                   fmt::format("no upload in {}{}", NamesOf(missing), WantedBy(health)),
                   "Wait for the builder; nodepool image-list --detail shows how far it is"));
  out.back().since = health.made;
  out.back().stops = StoppedIn(missing, configured);
}

}  // namespace

void FindImageProblems(Problems& out, const StatusRecords& records) {
  for (const auto& [image, settings] : records.configured.images) {
    ImageHealth health = HealthOf(records.caches.images, image, &settings, records.now);
    AddBuild(out, image, settings, health, records.now);
    AddUploads(out, image, settings, health);
  }
}

namespace {

// The labels whose faults the problems of images name.
std::set<LabelName> WithoutImage(const StatusRecords& records) {
  std::set<LabelName> labels;
  for (const auto& [label, why] : MissingImages(records.caches.images, records.configured, records.now))
    labels.insert(label);
  return labels;
}

// "0 of 2 min-ready nodes"; empty if there are enough.
std::string ShortStockOf(const LabelName& label, const StatusRecords& records) {
  auto configured = records.configured.labels.find(label);
  if (configured == records.configured.labels.end()) return "";
  auto free = static_cast<int>(records.caches.nodes.FreeCount(label));
  return free >= configured->second ? "" : fmt::format("{} of {} min-ready nodes", free, configured->second);
}

void AddUnavailable(Problems& out, const StatusRecords& records, std::set<LabelName>& known) {
  for (const auto& [label, faults] : FaultsOfLabels(records.caches.components.all())) {
    if (!known.insert(label).second) continue;
    std::string stock = ShortStockOf(label, records);
    out.push_back(
        {.kind = "label-unavailable",
         .name = label.value,
         .text = fmt::format("Label {} cannot be launched: {}{}", label, InOneLine(Join(faults, "; ")),
                             stock.empty() ? "" : "; it has " + stock),
         .remedy = "Correct the label in nodepool.yaml, or make what it names in the cloud",
         .stops = {{.label = label}}});
  }
}

// Of requests that wait.
std::set<LabelName> RequestedLabels(const store::RequestCache& requests) {
  std::set<LabelName> labels;
  for (const store::StoredRequest* request : WaitingRequests(requests))
    labels.insert(request->record.node_types.begin(), request->record.node_types.end());
  return labels;
}

void AddUnoffered(Problems& out, const StatusRecords& records) {
  if (!Runs(records, ComponentKind::kLauncher)) return;
  std::set<LabelName> offered;
  for (const auto& [path, component] : records.caches.components.all())
    offered.insert(component.supported_labels.begin(), component.supported_labels.end());
  std::set<LabelName> requested = RequestedLabels(records.caches.requests);
  for (const auto& [label, min_ready] : records.configured.labels) {
    bool is_wanted = min_ready > 0 || requested.contains(label);
    if (!is_wanted || offered.contains(label)) continue;
    std::string stock = min_ready > 0 ? fmt::format(", whose min-ready is {}", min_ready) : "";
    out.push_back({.kind = "label-unoffered",
                   .name = label.value,
                   .text = fmt::format("No pool offers label {}{}", label, stock),
                   .remedy = "Add it to a pool, or start a launcher that has one" +
                             std::string(stock.empty() ? "" : ", or set its min-ready to 0"),
                   .stops = {{.label = label}}});
  }
}

void AddShortStock(Problems& out, const StatusRecords& records, const std::set<LabelName>& known) {
  for (const auto& [label, shortage] :
       ShortagesOf(records.configured, records.caches.components.all(), records.caches.nodes)) {
    if (known.contains(label)) continue;
    out.push_back({.kind = "short-stock",
                   .name = label.value,
                   .severity = Severity::kWait,
                   .since = shortage.since,
                   .text = fmt::format("Label {} has {}: {}", label, ShortStockOf(label, records),
                                       InOneLine(shortage.why)),
                   .remedy = "Raise the limit that the reason names, give nodes back, or lower min-ready"});
  }
}

}  // namespace

void FindLabelProblems(Problems& out, const StatusRecords& records) {
  std::set<LabelName> known = WithoutImage(records);
  AddUnavailable(out, records, known);
  AddUnoffered(out, records);
  AddShortStock(out, records, known);
}

namespace {

using Waiting = std::vector<const store::StoredRequest*>;

// "8 of 8 instances": a limit that the tenant has reached, or that the request would exceed; empty: none.
std::string ReachedBy(const NodeRequest& request, const Resources& limits, const Resources& used) {
  for (const auto& [resource, limit] : limits) {
    auto found = used.find(resource);
    double amount = found == used.end() ? 0 : found->second;
    double more = resource == resource::kInstances ? static_cast<double>(request.node_types.size()) : 0;
    bool is_reached = more > 0 ? amount + more > limit : amount >= limit;
    if (is_reached) return fmt::format("{} of {} {}", amount, limit, resource);
  }
  return "";
}

void AddTenants(Problems& out, const StatusRecords& records, const Waiting& waiting) {
  std::map<std::string, std::vector<const NodeRequest*>> by_tenant;
  for (const store::StoredRequest* request : waiting) {
    if (request->record.tenant_name) by_tenant[*request->record.tenant_name].push_back(&request->record);
  }
  for (const auto& [tenant, requests] : by_tenant) {
    auto limits = records.configured.tenant_limits.find(tenant);
    if (limits == records.configured.tenant_limits.end()) continue;
    const Resources& used = records.caches.nodes.UsedByTenant(tenant);
    std::string reached = ReachedBy(*requests.front(), limits->second, used);
    if (reached.empty()) continue;
    out.push_back(
        {.kind = "tenant-limit",
         .name = tenant,
         .severity = Severity::kWait,
         .since = WaitsSince(*requests.front()),
         .subject = {"requests"},
         .text = fmt::format("Tenant {} has {}: {} of it {}", tenant, reached,
                             Counted(requests.size(), "request"), requests.size() == 1 ? "waits" : "wait"),
         .remedy = "Raise its limit in tenant-resource-limits, or wait for its jobs to end",
         .delayed_requests = requests.size()});
  }
}

void AddLongWaits(Problems& out, const StatusRecords& records, const Waiting& waiting) {
  std::map<std::string, Waiting> by_reason;
  for (const store::StoredRequest* request : waiting) {
    if (records.now - WaitsSince(request->record) < kLongWait) continue;
    auto why = records.why.find(request->id);
    by_reason[why == records.why.end() ? "" : InOneLine(why->second)].push_back(request);
  }
  for (const auto& [why, requests] : by_reason) {
    const store::StoredRequest& oldest = *requests.front();
    out.push_back(
        {.kind = "requests-waiting",
         .name = oldest.id.value,
         .severity = Severity::kWait,
         .since = WaitsSince(oldest.record),
         .subject = {"requests", oldest.id.value},
         .text = fmt::format(
             "{} for more than 5 minutes, {} for longest{}",
             requests.size() == 1 ? "1 request waits" : fmt::format("{} requests wait", requests.size()),
             oldest.id, why.empty() ? "" : ": " + why),
         .remedy = "nodepool request-list --detail shows what each pool says",
         .delayed_requests = requests.size()});
  }
}

}  // namespace

void FindRequestProblems(Problems& out, const StatusRecords& records) {
  Waiting waiting = WaitingRequests(records.caches.requests);
  AddTenants(out, records, waiting);
  AddLongWaits(out, records, waiting);
}

}  // namespace nodepool::listing
