#pragma once

#include <optional>

#include "async/task_group.h"
#include "driver/cloud/framework.h"
#include "driver/quota_information.h"

namespace nodepool::driver::cloud {

// What others use of an account's limits, in a cloud that says how much of each is used in all: also machines
// that no list of this provider shows. Such figures lag, so they are read again a minute after a change.
class OthersUse {
 public:
  // The framework is told when the figures have settled. Both outlive this, whose task belongs to `tasks`.
  OthersUse(TaskGroup& tasks, Framework& framework) : tasks_(tasks), framework_(framework) {}

  // The figures were read: what all use, and what the provider's own machines do, by resource.
  void Compare(const Resources& all, const Resources& own);

  // As of Adapter::UsedByOthers; none: it is not known yet.
  std::optional<QuotaInformation> Find() const;

 private:
  Task<> ReadAgainLater();

  TaskGroup& tasks_;
  Framework& framework_;
  std::optional<Resources> used_;
  bool is_settling_ = false;  // it will be read again soon
};

}  // namespace nodepool::driver::cloud
