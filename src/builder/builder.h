#pragma once

#include <memory>
#include <optional>

#include "async/blocking_pool.h"
#include "async/task_group.h"
#include "base/subscription.h"
#include "builder/build_worker.h"
#include "builder/cleanup_worker.h"
#include "builder/image_providers.h"
#include "builder/upload_worker.h"
#include "store/cache/caches.h"

namespace nodepool::builder {

// Reports the gauges once a minute (builder.md 15.2).
class StatsWorker {
 public:
  StatsWorker(Context& context, const BuildWorker& builds, const UploadWorker& uploads);
  ~StatsWorker();  // call Stop() first

  void Start();
  Task<> Stop();

  // Sets every gauge.
  void Report(metrics::Sink& to) const;

 private:
  Task<> Run();
  void ReportImage(const ImageName& image, metrics::Sink& to) const;
  bool IsRequestPending(const ImageName& image) const;

  Context& context_;
  const BuildWorker& builds_;
  const UploadWorker& uploads_;
  metrics::RepeatedGauges gauges_;
  TaskGroup tasks_;
};

// The daemon: a list of loops over one cache of the images. It only starts and stops them, and notifies them
// when the ZooKeeper session is lost.
class Builder {
 public:
  struct Options {
    Identity identity;
    process::Environment environment;  // for the programs that the builder runs
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

  // Ends builds, with time to clean up, and uploads (D-41), all within the graceful stop's time. With
  // `finishes_work` it first waits for running builds and uploads, however long they take. The session stays
  // open. What could not end in time, as when ZooKeeper is away, ends when the client was closed: call it
  // again then, before destruction.
  Task<> Stop();

  // Puts another configuration in force, at once. Builds and uploads under way end under the old one. Call
  // after Start() has ended.
  void Reconfigure(std::shared_ptr<const driver::LoadedConfig> config);

  // The changed configuration has a fault, so that the previous one stays in force; none: it can be used
  // again. Announced in ZooKeeper.
  void ConfigurationRejected(std::optional<RejectedConfiguration> rejected);

  const std::set<ImageName>& building() const { return builds_.building(); }

 private:
  void SessionChanged(zk::SessionState state);
  void Wake();
  Component Announcement() const;
  Task<> FinishWork();

  log::Logger logger_;
  store::Store store_;
  store::Caches caches_;
  Context context_;
  bool is_serving_ = false;
  std::optional<RejectedConfiguration> rejected_;
  store::ComponentEntry entry_;  // made from the above
  ImageProviders providers_;
  BuildWorker builds_;
  UploadWorker uploads_;
  CleanupWorker cleanup_;
  StatsWorker stats_;
  Loops loops_;  // of the above
  Subscription session_;
  Subscription image_watch_;
  bool finishes_work_;
  bool is_stopping_ = false;
};

}  // namespace nodepool::builder
