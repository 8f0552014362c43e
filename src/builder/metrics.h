#pragma once

#include <vector>

#include "base/metrics.h"

namespace nodepool::builder::stats {

using metrics::Kind;
using metrics::Metric;

// The builder's metrics (builder.md 15).

// --- Builds and uploads that ended ----------------------------------------------
inline constexpr Metric kBuildSize{Kind::kGauge, "nodepool.dib_image_build.{image}.{format}.size",
                                   "nodepool_image_build_size_bytes",
                                   "Bytes that the last build's file takes up."};
inline constexpr Metric kBuildDuration{Kind::kTiming, "nodepool.dib_image_build.{image}.status.duration",
                                       "nodepool_image_build_duration", "How long builds take, good or bad."};
inline constexpr Metric kBuildCode{Kind::kGauge, "nodepool.dib_image_build.{image}.status.rc",
                                   "nodepool_image_build_exit_code",
                                   "Exit code of the last build; 1 on time-out, negative for a signal."};
inline constexpr Metric kLastBuild{Kind::kGauge, "nodepool.dib_image_build.{image}.status.last_build",
                                   "nodepool_image_build_last",
                                   "When the last build ended, in epoch seconds."};
inline constexpr Metric kUploadTime{Kind::kTiming, "nodepool.image_update.{image}.{provider}",
                                    "nodepool_image_upload_timer", "How long successful uploads take."};
inline constexpr Metric kUpload{Kind::kCounter, "nodepool.image_update.{image}.{provider}",
                                "nodepool_image_upload", "Successful uploads."};

// --- Reported once a minute --------------------------------------------------------
inline constexpr Metric kBuildState{Kind::kGauge, "nodepool.builder.{fqdn}.image.{image}.build.state",
                                    "nodepool_builder_build_state",
                                    "0 idle, 1 building, 3 paused; of this builder."};
inline constexpr Metric kUploadState{
    Kind::kGauge, "nodepool.builder.{fqdn}.image.{image}.provider.{provider}.upload.state",
    "nodepool_builder_upload_state", "0 idle, 2 uploading, 3 paused; of this builder."};
inline constexpr Metric kBuildRequests{Kind::kGauge, "nodepool.image.{image}.image_build_requests",
                                       "nodepool_image_build_requests_by_image",
                                       "1 while a build was asked for and has not begun."};
inline constexpr Metric kAllBuildRequests{Kind::kGauge, "nodepool.image_build_requests",
                                          "nodepool_image_build_requests", "The sum of these."};
inline constexpr Metric kCurrentBuilds{Kind::kGauge, "nodepool.builder.{fqdn}.current_builds",
                                       "nodepool_builder_current_builds", "Builds that run in this builder."};
inline constexpr Metric kCurrentUploads{Kind::kGauge, "nodepool.builder.{fqdn}.current_uploads",
                                        "nodepool_builder_current_uploads",
                                        "Uploads that run in this builder."};
inline constexpr Metric kBuildWorkers{Kind::kGauge, "nodepool.builder.{fqdn}.build_workers",
                                      "nodepool_builder_build_workers", "Builds that may run at a time."};
inline constexpr Metric kUploadWorkers{Kind::kGauge, "nodepool.builder.{fqdn}.upload_workers",
                                       "nodepool_builder_upload_workers", "Uploads that may run at a time."};

// Every metric above.
inline std::vector<const Metric*> All() {
  return {&kBuildSize,     &kBuildDuration,  &kBuildCode,    &kLastBuild,     &kUploadTime,
          &kUpload,        &kBuildState,     &kUploadState,  &kBuildRequests, &kAllBuildRequests,
          &kCurrentBuilds, &kCurrentUploads, &kBuildWorkers, &kUploadWorkers};
}

}  // namespace nodepool::builder::stats
