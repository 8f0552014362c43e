#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "async/task_group.h"
#include "driver/cloud/adapter.h"

namespace nodepool::driver::cloud {

// The resources that one node of a label needs, asked once for each label of a provider. A label that can
// never work is in error: it is refused for 5 minutes, then probed again (D-26).
//
// Belongs to a provider, which is replaced when its configuration changes (configuration.md 9.7). A reload
// that changes other things makes new LabelConfigs of equal content, so labels are known by their names.
class LabelNeeds {
 public:
  // `changed` is called when a label in error may be probed again.
  LabelNeeds(TaskGroup& group, Adapter& adapter, std::function<void()> changed);

  // Error(kInvalid) while the label is in error; other errors are not cached.
  QuotaInformation For(const LabelConfig& label);
  bool IsInError(const LabelConfig& label) const;
  // All labels are asked again.
  void Clear();
  // Labels in error are asked again; a fault that stays is not reported again.
  void DoubtFaults();

 private:
  struct Fault {
    Error error;
    std::uint64_t number;  // of all faults: a later one of the same label is another one
    bool is_doubted = false;
  };

  void Note(const LabelConfig& label, const Error& error);

  Task<> ClearFaultLater(LabelKey label, std::uint64_t number);

  TaskGroup& group_;
  Adapter& adapter_;
  std::function<void()> changed_;
  log::Logger logger_{"nodepool.StateMachineHandler"};
  std::map<LabelKey, QuotaInformation> needs_;
  std::map<LabelKey, Fault> faults_;
  std::uint64_t fault_count_ = 0;
};

}  // namespace nodepool::driver::cloud
