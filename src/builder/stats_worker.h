#pragma once

#include "async/task_group.h"
#include "builder/build_worker.h"
#include "builder/upload_worker.h"

namespace nodepool::builder {

// Tells the gauges once a minute (builder.md 15.2).
class StatsWorker {
 public:
  // How many builds and uploads may run at a time.
  struct Limits {
    int builds = 1;
    int uploads = 4;
  };

  StatsWorker(Context& context, const BuildWorker& builds, const UploadWorker& uploads, Limits limits);
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
  Limits limits_;
  metrics::RepeatedGauges gauges_;
  TaskGroup tasks_;
};

}  // namespace nodepool::builder
