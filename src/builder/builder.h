#pragma once

#include <memory>

#include "async/blocking_pool.h"
#include "base/subscription.h"
#include "builder/build_worker.h"
#include "builder/cleanup_worker.h"
#include "builder/image_providers.h"
#include "builder/stats_worker.h"
#include "builder/upload_worker.h"
#include "store/cache/component_registry.h"

namespace nodepool::builder {

// The daemon: a list of loops over one cache of the images. It holds no logic of its own
// beyond starting and stopping them, and telling them when the ZooKeeper session is lost.
class Builder {
 public:
  struct Options {
    Identity identity;
    process::Environment environment;  // for what the builder runs
    WorkerCounts workers;
    Intervals intervals;
    bool finishes_work = false;  // Stop() waits for builds and uploads (D-41)
  };

  // All arguments outlive the builder. The configuration names images-dir.
  Builder(Loop& loop, Random& random, BlockingPool& blocking_pool, metrics::Metrics& metrics,
          zk::Client& client, driver::Registry& drivers, process::Runner& runner, LocalFiles& files,
          std::shared_ptr<const driver::LoadedConfig> config, Options options);
  ~Builder();  // call Stop() first

  // Ends when the image cache is complete; from then on images are built.
  Task<> Start();

  // Tells builds to end, with time to tidy up, and uploads (D-41), all within the graceful
  // stop's time. With `finishes_work` those that run are waited for before, however long they
  // take. The session stays open. What could not end in time, as when ZooKeeper is away, ends
  // when the client was closed: call it again then, before destruction.
  Task<> Stop();

  // Puts another configuration in force, at once. Builds and uploads under way end under
  // the old one. To be called after Start() has ended.
  void Reconfigure(std::shared_ptr<const driver::LoadedConfig> config);

  const std::set<ImageName>& building() const { return builds_.building(); }

 private:
  void SessionChanged(zk::SessionState state);
  void Wake();
  Task<> FinishWork();
  Task<> Bounded(SteadyTime deadline, std::string what, Task<> step);

  log::Logger logger_;
  store::Store store_;
  store::ImageCache images_;
  Context context_;
  store::ComponentEntry entry_;
  ImageProviders providers_;
  BuildWorker builds_;
  UploadWorker uploads_;
  CleanupWorker cleanup_;
  StatsWorker stats_;
  Subscription session_;
  Subscription image_watch_;
  bool finishes_work_;
  bool is_stopping_ = false;
};

}  // namespace nodepool::builder
