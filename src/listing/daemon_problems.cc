#include <fmt/format.h>

#include "listing/find_problems.h"

namespace nodepool::listing {
namespace {

void AddMissingDaemons(Problems& out, const StatusRecords& records) {
  if (!Runs(records, ComponentKind::kLauncher)) {
    out.push_back({.kind = "no-launcher",
                   .subject = {"components"},
                   .text = "No launcher runs: nobody takes requests or deletes nodes",
                   .remedy = "systemctl start nodepool-launcher; if it ends at once, its log says why",
                   .stops = {Problem::Place()}});
  }
  if (!Runs(records, ComponentKind::kBuilder) && !records.configured.images.empty()) {
    out.push_back({.kind = "no-builder",
                   .subject = {"components"},
                   .text = "No builder runs: no image is built or uploaded",
                   .remedy = "systemctl start nodepool-builder; if it ends at once, its log says why"});
  }
}

void AddRejectedConfigurations(Problems& out, const StatusRecords& records) {
  for (const auto& [path, component] : records.caches.components.all()) {
    const auto& rejected = component.configuration_rejected;
    if (!rejected) continue;
    out.push_back(
        {.kind = "configuration-rejected",
         .name = fmt::format("{}/{}", ToString(component.kind), component.hostname),
         .since = rejected->since,
         .subject = {"components", path},
         .text = fmt::format("The {} on {} keeps its previous configuration: {}", ToString(component.kind),
                             component.hostname, InOneLine(rejected->error)),
         .remedy = "Correct the file (nodepool config-validate); it is read again by itself"});
  }
}

}  // namespace

void FindDaemonProblems(Problems& out, const StatusRecords& records) {
  AddMissingDaemons(out, records);
  AddRejectedConfigurations(out, records);
}

}  // namespace nodepool::listing
