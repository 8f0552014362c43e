#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "async/loop.h"
#include "base/metrics/metrics.h"
#include "base/random.h"
#include "builder/files/local_files.h"
#include "driver/loading/load_config.h"
#include "process/command.h"
#include "store/cache/image_cache.h"
#include "store/store.h"

namespace nodepool::builder {

// How often the things happen that no event announces, and for how long others may go
// on. Not part of the public configuration; tests shorten them.
struct Intervals {
  Duration cleanup = std::chrono::seconds(60);
  Duration first_retry = std::chrono::minutes(1);  // doubled with each failure (D-40)
  Duration last_retry = std::chrono::hours(1);
  Duration stop_grace = std::chrono::seconds(30);  // for a build that is told to end (D-41)
  Duration hook_timeout = std::chrono::hours(1);   // of a post-upload-hook (D-35)
  Duration graceful_stop = std::chrono::seconds(60);
};

// How many builds and uploads may run at a time; 0: none at all. The configuration may say
// something else, which goes for what begins after it.
struct WorkerCounts {
  int builds = 1;
  int uploads = 4;
};

// Who this builder is.
struct Identity {
  std::string hostname;  // as the operating system reports it
  std::string fqdn;
  std::string builder_id;  // of images-dir
  std::string helpers;     // directory that %p in dib-cmd stands for (D-43)
};

// What the builder's parts share. Everything outlives them.
struct Context {
  // In force now; replaced as a whole. To be looked at anew after each await.
  std::shared_ptr<const driver::LoadedConfig> config;
  Loop& loop;
  Random& random;
  metrics::Metrics& metrics;
  store::Store& store;
  store::ImageCache& images;
  process::Runner& runner;
  LocalFiles& files;
  process::Environment environment;  // the daemon's, for what it runs
  Identity identity;
  Intervals intervals;
  WorkerCounts workers;  // by the command line
  LocalBuilds local;     // as last seen
  std::function<void()> local_changed = [] {};

  bool is_connected() const {
    return images.synced() && store.tree.client().state() == zk::SessionState::kConnected;
  }
  int most_builds() const { return config->common.build_workers.value_or(workers.builds); }
  int most_uploads() const { return config->common.upload_workers.value_or(workers.uploads); }
  const std::string& images_dir() const { return *config->common.images_dir; }
};

// Looks at images-dir again, and tells when something has changed there.
Task<> RefreshLocal(Context& context);

// Removes what builds that were killed left outside of images-dir (D-41).
Task<> RemoveTemporary(Context& context);

}  // namespace nodepool::builder
