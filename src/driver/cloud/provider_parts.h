#pragma once

#include <memory>

#include "async/event.h"
#include "async/task_group.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/cloud_provider.h"
#include "driver/cloud/label_needs.h"
#include "driver/cloud/quota_cache.h"
#include "driver/cloud/shortages.h"
#include "driver/provider_environment.h"
#include "store/records.h"

namespace nodepool::driver::cloud {

// What the parts of one provider share. Lives as long as the provider.
class ProviderParts {
 public:
  ProviderParts(ProviderEnvironment environment, std::shared_ptr<const ProviderConfig> config,
                std::unique_ptr<Adapter> adapter, HostKeyScan scan);

  ProviderEnvironment environment;
  std::shared_ptr<const ProviderConfig> config;
  std::unique_ptr<Adapter> adapter;
  HostKeyScan scan;  // empty: the adapter reports host keys, and machines are never contacted
  TaskGroup background;
  LabelNeeds needs;
  QuotaCache quota;
  Shortages shortages;

  Loop& loop() { return environment.loop; }
  // The newest image of the label that can be booted; null when there is none (yet),
  // or when the label boots a cloud image.
  const store::StoredUpload* Image(const LabelConfig& label) const;

  // Marks a launch or deletion in progress that uses the adapter.
  class Work {
   public:
    explicit Work(ProviderParts& context) : context_(context) { ++context_.work_in_progress_; }
    ~Work() {
      if (--context_.work_in_progress_ == 0) context_.idle_.NotifyAll();
    }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

   private:
    ProviderParts& context_;
  };
  // Ends when there is no Work.
  Task<> WaitIdle();

 private:
  int work_in_progress_ = 0;
  WaitList idle_;
};

}  // namespace nodepool::driver::cloud
