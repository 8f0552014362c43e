#include <fmt/format.h>

#include "base/text.h"
#include "listing/find_problems.h"
#include "listing/image_health.h"

namespace nodepool::listing {
namespace {

template <class Ids>
std::string NamesOf(const Ids& ids) {
  std::vector<std::string> names;
  for (const auto& id : ids) names.push_back(id.value);
  return Join(names, ", ");
}

// Whom it concerns.
std::string WantedBy(const ImageHealth& health) {
  return health.labels.empty() ? "" : "; it is wanted by " + NamesOf(health.labels);
}

Problem Of(const ImageName& image, std::string_view kind, std::string text, std::string remedy) {
  return {.kind = kind,
          .name = image.value,
          .subject = {"images", image.value},
          .text = fmt::format("Image {}: {}", image, text),
          .remedy = std::move(remedy)};
}

std::string ReadTheLog(const ImageName& image, const ImageHealth& health) {
  std::string host = health.newest->record.builder.value_or("");
  return fmt::format("Read the end of its log in build-log-dir{}, then nodepool image-build {}",
                     host.empty() ? "" : " on " + host, image);
}

void AddBuild(Problems& out, const ImageName& image, const ImageHealth& health, WallTime now) {
  std::string unready = health.made ? "" : ", and no build is ready";
  if (health.has_failed) {
    Problem& problem =
        out.emplace_back(Of(image, "image-build-failed", "the newest build failed" + unready + WantedBy(health),
                            ReadTheLog(image, health)));
    problem.since = health.newest->record.state_time;
    problem.severity = health.labels.empty() ? Problem::Severity::kWait : Problem::Severity::kBad;
  } else if (!health.made) {
    out.push_back(Of(image, "image-not-built", "no build is ready" + WantedBy(health),
                     "Wait for the builder, whose log says what it does; nodepool dib-image-list shows builds"));
    out.back().severity = Problem::Severity::kWait;
  } else if (health.is_old) {
    out.push_back(Of(image, "image-too-old", fmt::format("it is {} old", FormatAge(now - *health.made)),
                     fmt::format("The builder's log says why it builds none; nodepool image-build {} asks for one",
                                 image)));
    out.back().severity = Problem::Severity::kWait;
  }
}

void AddUploads(Problems& out, const ImageName& image, const ImageHealth& health) {
  for (const auto& [provider, upload] : health.failed_uploads) {
    bool is_missing = std::ranges::find(health.missing, provider) != health.missing.end();
    Problem problem = Of(image, "image-upload-failed",
                         fmt::format("the upload to {} failed{}", provider, is_missing ? WantedBy(health) : ""),
                         fmt::format("The builder's log says what the cloud answered; nodepool "
                                     "image-upload-retry {} {} tries again at once",
                                     provider, image));
    problem.name = fmt::format("{}/{}", image, provider);
    problem.since = upload->record.state_time;
    out.push_back(std::move(problem));
  }
  std::vector<ProviderName> missing = health.missing;
  std::erase_if(missing, [&](const ProviderName& name) { return health.failed_uploads.contains(name); });
  if (missing.empty() || !health.made) return;
  out.push_back(Of(image, "image-not-uploaded",
                   fmt::format("no upload in {}{}", NamesOf(missing), WantedBy(health)),
                   "Wait for the builder, whose log says what it does; nodepool image-list --detail shows how "
                   "far it is"));
  out.back().severity = Problem::Severity::kWait;
}

}  // namespace

void FindImageProblems(Problems& out, const StatusRecords& records) {
  for (const auto& [image, settings] : records.configured.images) {
    ImageHealth health = HealthOf(records.images, image, &settings, records.now);
    AddBuild(out, image, health, records.now);
    AddUploads(out, image, health);
  }
}

}  // namespace nodepool::listing
