#include "builder/stats_metrics.h"

namespace nodepool::builder::stats {

std::vector<const Metric*> All() {
  return {&kBuildSize,     &kBuildDuration,  &kBuildCode,    &kLastBuild,     &kUploadTime,
          &kUpload,        &kBuildState,     &kUploadState,  &kBuildRequests, &kAllBuildRequests,
          &kCurrentBuilds, &kCurrentUploads, &kBuildWorkers, &kUploadWorkers};
}

}  // namespace nodepool::builder::stats
