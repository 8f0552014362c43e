#pragma once

#include <functional>
#include <string>
#include <utility>

#include "driver/cloud/adapter.h"

namespace nodepool::driver::cloud {

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

}  // namespace nodepool::driver::cloud
