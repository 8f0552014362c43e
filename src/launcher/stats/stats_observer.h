#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/metrics/metrics.h"
#include "driver/observer.h"
#include "launcher/breakers/breakers.h"

namespace nodepool::launcher {

// Turns what providers report into metrics: launch attempts, leaks (launcher.md 27.2, 27.6), API calls
// (driver-openstack.md 18), hosts (driver-libvirt.md 20). The breakers get the launch attempts as well.
class StatsObserver final : public driver::ProviderObserver {
 public:
  // Both outlive it; null: there are no breakers.
  explicit StatsObserver(metrics::Metrics& metrics, Breakers* breakers = nullptr)
      : metrics_(metrics), breakers_(breakers) {}

  void LaunchAttemptEnded(const driver::LaunchOutcome& outcome) override;
  bool IsWorthAnotherAttempt(const driver::LaunchOutcome& failed) override;
  void LeakedResourcesDeleted(const ProviderName& provider, const std::string& kind, int count) override;
  void ApiCallEnded(const driver::ApiCall& call) override;
  void ApiRateChanged(const driver::ApiRate& rate) override;
  void CandidateTried(const driver::CandidateOutcome& outcome) override;
  void MachineTaken(const ProviderName& provider, bool is_in_use) override;
  void ReadyNodeFailed(const ProviderName& provider, std::string_view reason) override;
  void HostAdded(const ProviderName& provider, const std::string& host) override;
  void HostRemoved(const ProviderName& provider, const std::string& host) override;
  void HostCallEnded(const driver::HostCall& call) override;
  void HostMeasured(const driver::HostUse& use) override;

  // How the services of a provider's cloud are called, as last reported, by budget. A service that has borne
  // all calls is not in it.
  using ApiRates = std::map<std::string, driver::ApiRate>;
  const ApiRates& ApiRatesOf(const ProviderName& provider) const;

 private:
  metrics::Metrics& metrics_;
  Breakers* breakers_;
  std::map<ProviderName, ApiRates> api_rates_;
  std::multiset<std::pair<ProviderName, std::string>> hosts_;  // as often as they were added
};

}  // namespace nodepool::launcher
