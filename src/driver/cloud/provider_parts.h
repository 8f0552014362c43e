#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "async/event.h"
#include "async/task.h"
#include "async/task_group.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/cloud_driver.h"
#include "driver/cloud/quota/quota_cache.h"
#include "driver/driver.h"
#include "driver/provider_environment.h"
#include "store/records.h"

namespace nodepool::driver::cloud {

// How much work is under way, so that an end can wait for it.
class WorkCount {
 public:
  // A piece of work, from its construction to its destruction. The count outlives it.
  class Piece {
   public:
    explicit Piece(WorkCount& count) : count_(count) { ++count_.under_way_; }
    ~Piece() {
      if (--count_.under_way_ == 0) count_.idle_.NotifyAll();
    }
    Piece(const Piece&) = delete;
    Piece& operator=(const Piece&) = delete;

   private:
    WorkCount& count_;
  };

  // Ends when there is none.
  Task<> WaitIdle() {
    while (under_way_ > 0) co_await idle_.Wait();
  }

 private:
  int under_way_ = 0;
  WaitList idle_;
};

// The MachineReport of one creation or deletion: logs its states and passes its id on.
class Progress : public MachineReport {
 public:
  using StoreId = std::function<Task<>(boost::json::value)>;

  // Without `store_id` an id is ignored: a deletion knows it already. `pool` may be null.
  Progress(log::Logger logger, int attempt, std::shared_ptr<const PoolConfig> pool,
           StoreId store_id = nullptr)
      : logger_(std::move(logger)),
        attempt_(attempt),
        pool_(std::move(pool)),
        store_id_(std::move(store_id)) {}

  void SetState(std::string state) override {
    if (state == state_) return;
    state_ = std::move(state);
    logger_.Debug("Attempt {}: {}", attempt_, state_);
  }
  Task<> SetExternalId(boost::json::value id) override {
    if (store_id_) co_await store_id_(std::move(id));
  }
  const log::Logger& logger() const override { return logger_; }
  int attempt() const override { return attempt_; }
  std::shared_ptr<const PoolConfig> pool() const override { return pool_; }
  const std::string& state() const { return state_; }

 private:
  log::Logger logger_;
  int attempt_;
  std::shared_ptr<const PoolConfig> pool_;
  StoreId store_id_;
  std::string state_ = "start";
};

// What the parts of one provider share. Lives as long as the provider.
class ProviderParts {
 public:
  // `framework` outlives this.
  ProviderParts(ProviderEnvironment environment, std::shared_ptr<const ProviderConfig> config,
                Framework& framework, const MakeAdapter& make, HostKeyScan scan);

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
  // The same for a launch for the request: of one that validates an upload, that one.
  const store::StoredUpload* Image(const LabelConfig& label, const NodeRequest& request) const;

  // Launches, deletions and questions under way that use the adapter.
  WorkCount work;
};

// An adapter that is not started: it makes only the calls that it is asked for.
class UnstartedAdapter {
 public:
  UnstartedAdapter(const DriverEnvironment& environment, const MakeAdapter& make);
  Adapter* operator->() const { return adapter_.get(); }
  Adapter& operator*() const { return *adapter_; }

 private:
  Framework framework_;
  std::unique_ptr<Adapter> adapter_;
};

// The images of a cloud provider. Each call has a time-out.
class CloudImages : public ImageStore {
 public:
  CloudImages(const DriverEnvironment& environment, std::shared_ptr<const ProviderConfig> config,
              const MakeAdapter& make);

  const ProviderConfig& config() const override { return *config_; }
  Task<std::string> UploadImage(ImageUploadParameters upload) override;
  Task<> DeleteImage(std::string external_id) override;
  Task<> Stop() override;

 private:
  Loop& loop_;
  std::shared_ptr<const ProviderConfig> config_;
  UnstartedAdapter adapter_;
  WorkCount work_;
};

class CloudTools : public OperatorTools {
 public:
  CloudTools(const DriverEnvironment& environment, std::shared_ptr<const ProviderConfig> config,
             const MakeAdapter& make);

  Task<std::vector<ListedMachine>> ListMachines() override;
  Task<std::vector<ListedImage>> ListImages() override;
  Task<std::vector<std::string>> FindFaults() override;
  Task<> DeleteResources(const NodeId& id, const Node& node) override;
  Task<> Stop() override;

 private:
  Loop& loop_;
  std::shared_ptr<const ProviderConfig> config_;
  UnstartedAdapter adapter_;
};

// Deletes the machine of a node, if it has one, and ends when it is gone. Everything outlives the task.
Task<> DeleteMachineOf(Loop& loop, Adapter& adapter, const ProviderConfig& config, NodeId id,
                       const Node& node);

}  // namespace nodepool::driver::cloud
