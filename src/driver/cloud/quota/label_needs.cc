#include "driver/cloud/quota/label_needs.h"

#include <utility>

namespace nodepool::driver::cloud {

namespace {

constexpr Duration kProbeInterval = std::chrono::minutes(5);

}  // namespace

LabelNeeds::LabelNeeds(TaskGroup& group, Adapter& adapter, std::function<void()> changed)
    : group_(group), adapter_(adapter), changed_(std::move(changed)) {}

QuotaInformation LabelNeeds::For(const LabelConfig& label) {
  LabelKey key = label.key();
  if (auto known = needs_.find(key); known != needs_.end()) return known->second;
  if (auto fault = faults_.find(key); fault != faults_.end() && !fault->second.is_doubted)
    throw fault->second.error;
  try {
    QuotaInformation need = adapter_.QuotaForLabel(label);
    faults_.erase(key);
    return needs_.emplace(std::move(key), std::move(need)).first->second;
  } catch (const Error& error) {
    if (error.verdict() == Verdict::kInvalid) Note(label, error);
    throw;
  }
}

void LabelNeeds::Note(const LabelConfig& label, const Error& error) {
  auto known = faults_.find(label.key());
  bool is_same = known != faults_.end() && known->second.error.message() == error.message();
  if (is_same) {
    known->second.is_doubted = false;
    return;
  }
  logger_.Error("Label {} is unavailable until its configuration or the cloud is fixed: {}", label.name,
                error.message());
  std::uint64_t number = ++fault_count_;
  faults_.insert_or_assign(label.key(), Fault{error, number});
  group_.Spawn("probe label " + label.name.str(), ClearFaultLater(label.key(), number));
}

bool LabelNeeds::IsInError(const LabelConfig& label) const {
  auto fault = faults_.find(label.key());
  return fault != faults_.end() && !fault->second.is_doubted;
}

void LabelNeeds::DoubtFaults() {
  for (auto& [label, fault] : faults_) fault.is_doubted = true;
}

void LabelNeeds::Clear() {
  needs_.clear();
  if (!std::exchange(faults_, {}).empty()) changed_();
}

Task<> LabelNeeds::ClearFaultLater(LabelKey label, std::uint64_t number) {
  co_await group_.loop().SleepFor(kProbeInterval);
  auto fault = faults_.find(label);
  if (fault == faults_.end() || fault->second.number != number) co_return;
  faults_.erase(fault);
  changed_();
}

}  // namespace nodepool::driver::cloud
