#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "listing/find_problems.h"
#include "listing/image_health.h"

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

}  // namespace nodepool::listing
