#pragma once

#include <functional>
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

}  // namespace nodepool::builder
