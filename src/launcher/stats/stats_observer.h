#pragma once

#include <set>
#include <string>
#include <utility>

#include "base/metrics/metrics.h"
#include "driver/observer.h"

namespace nodepool::launcher {

// Turns what providers report into metrics: launch attempts, leaks (launcher.md 27.2, 27.6), API calls
// (driver-openstack.md 18), hosts (driver-libvirt.md 20).
class StatsObserver final : public driver::ProviderObserver {
 public:
  explicit StatsObserver(metrics::Metrics& metrics) : metrics_(metrics) {}

  void LaunchAttemptEnded(const driver::LaunchOutcome& outcome) override;
  void LeakedResourcesDeleted(const ProviderName& provider, const std::string& kind, int count) override;
  void ApiCallEnded(const driver::ApiCall& call) override;
  void ApiRateChanged(const driver::ApiRate& rate) override;
  void CandidateTried(const driver::CandidateOutcome& outcome) override;
  void MachineTaken(const ProviderName& provider, bool is_in_use) override;
  void HostAdded(const ProviderName& provider, const std::string& host) override;
  void HostRemoved(const ProviderName& provider, const std::string& host) override;
  void HostCallEnded(const driver::HostCall& call) override;
  void HostMeasured(const driver::HostUse& use) override;

 private:
  metrics::Metrics& metrics_;
  std::multiset<std::pair<ProviderName, std::string>> hosts_;  // as often as they were added
};

}  // namespace nodepool::launcher
