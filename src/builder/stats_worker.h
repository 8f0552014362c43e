#pragma once

#include "async/task_group.h"
#include "builder/build_worker.h"
#include "builder/upload_worker.h"

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

}  // namespace nodepool::builder
