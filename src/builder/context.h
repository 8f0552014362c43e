#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/loop.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/metrics.h"
#include "builder/files/local_files.h"
#include "driver/loading/load_config.h"
#include "process/command.h"
#include "sched/images/image_life.h"
#include "store/cache/caches.h"
#include "store/store.h"

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
std::vector<const Metric*> All();

}  // namespace nodepool::builder::stats

namespace nodepool::builder {

// Periods of what no event triggers, and time-outs. Not part of the public configuration; tests shorten them.
struct Intervals {
  Duration cleanup = std::chrono::seconds(60);
  Duration first_retry = std::chrono::minutes(1);  // doubled with each failure (D-40)
  Duration last_retry = std::chrono::hours(1);
  Duration stop_grace = std::chrono::seconds(30);  // for a build that is being cancelled (D-41)
  Duration hook_timeout = std::chrono::hours(1);   // of a post-upload-hook (D-35)
  Duration graceful_stop = std::chrono::seconds(60);
};

// How many builds and uploads may run at a time; 0: none. The configuration may override them for what begins
// later.
struct WorkerCounts {
  int builds = 1;
  int uploads = 4;
};

// Who this builder is.
struct Identity {
  std::string hostname;  // as the operating system reports it
  std::string fqdn;
  std::string builder_id;  // from images-dir
  std::string helpers;     // the directory that replaces %p in dib-cmd (D-43)
};

// What the builder's parts share. Everything outlives them.
struct Context {
  // In force now; replaced as a whole. Read it again after each await.
  std::shared_ptr<const driver::LoadedConfig> config;
  Loop& loop;
  Random& random;
  metrics::Metrics& metrics;
  store::Store& store;
  store::Caches& caches;  // only the images are followed
  process::Runner& runner;
  LocalFiles& files;
  process::Environment environment;  // the daemon's, for the programs that it runs
  Identity identity;
  Intervals intervals;
  WorkerCounts workers;  // from the command line
  LocalBuilds local;     // as last seen
  std::function<void()> local_changed = [] {};

  bool is_connected() const {
    return caches.synced() && store.tree.client().state() == zk::SessionState::kConnected;
  }
  int most_builds() const { return config->common.build_workers.value_or(workers.builds); }
  int most_uploads() const { return config->common.upload_workers.value_or(workers.uploads); }
  const std::string& images_dir() const { return *config->common.images_dir; }
};

// Scans images-dir again, and notifies when something has changed there.
Task<> RefreshLocal(Context& context);

// Removes what killed builds left in their temporary folders (D-41).
Task<> RemoveTemporary(Context& context);

// The input of decisions, made from what is known now.

// The image as the cache shows it.
sched::ImageView ViewOf(const Context& context, const ImageName& image);
// The same with builds that were read directly.
sched::ImageView ViewOf(const Context& context, const ImageName& image,
                        const std::vector<store::StoredBuild>& builds);

// The image's spec in the configuration; nullopt: it is not configured.
std::optional<sched::ImageSpec> SpecOf(const driver::LoadedConfig& config, const ImageName& image);

// The providers to which images are uploaded and from which they are deleted.
std::set<ProviderName> ProvidersWithImages(const driver::LoadedConfig& config);

// When a failed job may be tried again: after a pause that doubles with each failure (D-40), or at once when
// `circumstances`, any text that describes them, have changed.
template <class Key>
class Retries {
 public:
  Retries(Duration first, Duration last) : first_(first), last_(last) {}

  // Records a failure; returns the pause until the next attempt.
  Duration Failed(const Key& key, std::string circumstances, SteadyTime now) {
    Entry& entry = entries_[key];
    bool is_again = entry.pause > Duration::zero() && entry.circumstances == circumstances;
    entry.pause = is_again ? std::min(entry.pause * 2, last_) : first_;
    entry.circumstances = std::move(circumstances);
    entry.at = now + entry.pause;
    return entry.pause;
  }
  // The job was not done and did not fail: another process is working on it.
  void NotYet(const Key& key, std::string circumstances, SteadyTime now) {
    Entry& entry = entries_[key];
    entry.circumstances = std::move(circumstances);
    entry.at = now + kNotYet;
  }
  void Succeeded(const Key& key) { entries_.erase(key); }

  // When the next attempt is due; nullopt: now.
  std::optional<SteadyTime> WaitsUntil(const Key& key, const std::string& circumstances,
                                       SteadyTime now) const {
    auto found = entries_.find(key);
    if (found == entries_.end() || found->second.at <= now) return std::nullopt;
    if (found->second.circumstances != circumstances) return std::nullopt;
    return found->second.at;
  }

 private:
  static constexpr Duration kNotYet = std::chrono::seconds(10);

  struct Entry {
    Duration pause{0};
    SteadyTime at;
    std::string circumstances;
  };

  Duration first_;
  Duration last_;
  std::map<Key, Entry> entries_;
};

}  // namespace nodepool::builder
