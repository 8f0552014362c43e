#include "launcher/stats/stats_health.h"

#include <algorithm>

#include "launcher/stats/stats_metrics.h"
#include "listing/image_health.h"
#include "listing/label_state.h"

namespace nodepool::launcher {
namespace {

void ReportImage(const ImageName& name, const listing::ConfiguredImage& configured,
                 const listing::ImageHealth& health, metrics::Sink& to) {
  to.Set(stats::kImageBuildFailed, {name.value}, health.failed != nullptr ? 1 : 0);
  to.Set(stats::kImageTooOld, {name.value}, health.is_old ? 1 : 0);
  for (const auto& [provider, labels] : configured.labels) {
    bool is_missing = std::ranges::find(health.missing, provider) != health.missing.end();
    to.Set(stats::kImageUploadMissing, {name.value, provider.value}, is_missing ? 1 : 0);
  }
}

}  // namespace

void ReportHealth(const listing::Configured& configured, const std::map<std::string, Component>& components,
                  const store::NodeCache& nodes, const store::ImageCache& images, WallTime now,
                  metrics::Sink& to) {
  auto shortages = listing::ShortagesOf(configured, components, nodes);
  for (const auto& [label, min_ready] : configured.labels) {
    if (min_ready <= 0) continue;
    auto shortage = shortages.find(label);
    to.Set(stats::kLabelShortage, {label.value}, shortage == shortages.end() ? 0 : shortage->second.missing);
  }
  for (const auto& [image, settings] : configured.images)
    ReportImage(image, settings, listing::HealthOf(images, image, &settings, now), to);
  for (const auto& [path, component] : components) {
    if (component.kind == ComponentKind::kPool) continue;
    const auto& rejected = component.configuration_rejected;
    to.Set(stats::kConfigurationRejected, {std::string(ToString(component.kind)), component.hostname},
           rejected ? ToSeconds(rejected->since) : 0);
  }
}

}  // namespace nodepool::launcher
