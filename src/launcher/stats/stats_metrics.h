#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/metrics.h"
#include "driver/provider_environment.h"
#include "launcher/breakers/breakers.h"

namespace nodepool::launcher::stats {

using metrics::Kind;
using metrics::Metric;

// The launcher's metrics (launcher.md 27, operations.md 9 and 10).

// --- Launch attempts: a timing and a counter under the same key ---------------
inline constexpr Metric kLaunchTime{Kind::kTiming, "nodepool.launch.{result}", "nodepool_launch_timer",
                                    "Time from the first attempt for a node to the end of this one."};
inline constexpr Metric kLaunch{Kind::kCounter, "nodepool.launch.{result}", "nodepool_launch",
                                "Launch attempts that ended, by result: ready or error.KIND."};
inline constexpr Metric kProviderLaunchTime{Kind::kTiming, "nodepool.launch.provider.{provider}.{result}",
                                            "nodepool_launch_by_provider_timer", "The same by provider."};
inline constexpr Metric kProviderLaunch{Kind::kCounter, "nodepool.launch.provider.{provider}.{result}",
                                        "nodepool_launch_by_provider", "The same by provider."};
inline constexpr Metric kZoneLaunchTime{Kind::kTiming, "nodepool.launch.provider.{provider}.{az}.{result}",
                                        "nodepool_launch_by_provider_az_timer",
                                        "The same by zone, of nodes that have one."};
inline constexpr Metric kZoneLaunch{Kind::kCounter, "nodepool.launch.provider.{provider}.{az}.{result}",
                                    "nodepool_launch_by_provider_az",
                                    "The same by zone, of nodes that have one."};
inline constexpr Metric kRequestorLaunchTime{Kind::kTiming, "nodepool.launch.requestor.{requestor~}.{result}",
                                             "nodepool_launch_by_requestor_timer",
                                             "The same by requestor, of requests that name one."};
inline constexpr Metric kRequestorLaunch{Kind::kCounter, "nodepool.launch.requestor.{requestor~}.{result}",
                                         "nodepool_launch_by_requestor",
                                         "The same by requestor, of requests that name one."};

inline constexpr Metric kCandidate{
    Kind::kCounter, "nodepool.provider.{provider}.candidate.{candidate~}.{result}",
    "nodepool_launch_candidates_total",
    "Kinds of machine and places that launches tried, where a label has several: created or no_capacity."};
inline constexpr Metric kMachineType{
    Kind::kCounter, "nodepool.provider.{provider}.machine_type.{type~}.launched",
    "nodepool_machines_launched_total",
    "Machines that became nodes, by the configured type that was chosen, of drivers that report it."};
inline constexpr Metric kTaken{
    Kind::kCounter, "nodepool.provider.{provider}.taken.{state}", "nodepool_machines_taken_total",
    "Nodes whose machine the cloud took away, such as interrupted spot instances: ready or "
    "in-use."};
inline constexpr Metric kReadyFailed{
    Kind::kCounter, "nodepool.provider.{provider}.recheck.failed.{reason}",
    "nodepool_ready_nodes_failed_total",
    "Ready nodes that failed when they were checked again (recheck-interval), and were deleted: silent, "
    "host-keys (they showed others) or command (recheck)."};

// --- Calls of clouds' APIs --------------------------------------------------------
inline constexpr Metric kApiCall{Kind::kCounter, "{driver}.api.{service~}.{method}.{name}.{result}",
                                 "nodepool_api_calls_total",
                                 "Calls of a cloud's API by what they asked for and how they ended: "
                                 "attempted, a status, failed (no answer), "
                                 "over_1000 (slower than a second)."};
inline constexpr Metric kApiCallTime{Kind::kTiming, "{driver}.api.{service~}.{method}.{name}.{status}",
                                     "nodepool_api_call_timer", "Time until the answer, by its status."};

inline constexpr Metric kApiRate{
    Kind::kGauge, "nodepool.provider.{provider}.api_rate.{budget~}", "nodepool_api_rate_share",
    "Part of the usual rate at which a service is called: 1, or less after it refused "
    "calls because there were too many, answered slowly or not at all."};
inline constexpr Metric kApiWaiting{
    Kind::kGauge, "nodepool.provider.{provider}.api_waiting.{budget~}", "nodepool_api_calls_waiting",
    "Calls of a service that wait for their turn, because of the configured rate or a lower one."};

// --- The whole cluster; to statsd by the elected launcher only ----------------
inline constexpr Metric kNodes{Kind::kGauge, "nodepool.nodes.{state}", "nodepool_nodes",
                               "Nodes by state, of the whole cluster."};
inline constexpr Metric kProviderNodes{Kind::kGauge, "nodepool.provider.{provider}.nodes.{state}",
                                       "nodepool_nodes_by_provider",
                                       "Nodes by provider and state, of the whole cluster."};
inline constexpr Metric kLabelNodes{
    Kind::kGauge, "nodepool.label.{label}.nodes.{state}", "nodepool_nodes_by_label",
    "Nodes by label and state, of the whole cluster; a node counts for each of its labels."};
inline constexpr Metric kHourlyCost{Kind::kGauge, "nodepool.provider.{provider}.label.{label}.hourly_cost",
                                    "nodepool_hourly_cost",
                                    "Sum of the prices per hour of the nodes' machines, by the label for "
                                    "which they were launched, of the whole "
                                    "cluster; only machines whose price is configured."};
inline constexpr Metric kAddressableRequests{
    Kind::kGauge, "nodepool.provider.{provider}.pool.{pool}.addressable_requests",
    "nodepool_addressable_requests", "Requests in any state all of whose labels the pool offers."};

inline constexpr Metric kConfigurationRejected{
    Kind::kGauge, "nodepool.component.{kind}.{hostname~}.configuration_rejected",
    "nodepool_configuration_rejected",
    "Since when a launcher or builder keeps its previous configuration because the changed one has a fault, "
    "in "
    "epoch seconds; 0 while it uses the configuration."};

// --- The cluster's state compared with this launcher's configuration --------------
inline constexpr Metric kLabelShortage{
    Kind::kGauge, "nodepool.label.{label}.shortage", "nodepool_label_shortage",
    "Nodes that a label lacks of its min-ready while launchers fail to get more; 0 while they do not."};
inline constexpr Metric kImageBuildFailed{Kind::kGauge, "nodepool.image.{image}.build_failed",
                                          "nodepool_image_build_failed",
                                          "1 while the image's newest build has failed, otherwise 0."};
inline constexpr Metric kImageTooOld{
    Kind::kGauge, "nodepool.image.{image}.too_old", "nodepool_image_too_old",
    "1 while the image's newest ready build is older than twice its rebuild-age, otherwise 0."};
inline constexpr Metric kImageUploadMissing{
    Kind::kGauge, "nodepool.image.{image}.provider.{provider}.upload_missing",
    "nodepool_image_upload_missing", "1 while the provider has no ready upload of the image, otherwise 0."};

// --- This launcher's configuration ---------------------------------------------
inline constexpr Metric kMaxServers{Kind::kGauge, "nodepool.provider.{provider}.max_servers",
                                    "nodepool_provider_max_servers",
                                    "Sum of max-servers over the provider's pools; inf: unlimited."};
inline constexpr Metric kTenantLimit{Kind::kGauge, "nodepool.tenant_limits.{tenant~}.{resource~}",
                                     "nodepool_tenant_limit",
                                     "Configured limit of a tenant; inf: unlimited."};

// --- This launcher at work -------------------------------------------------------
inline constexpr Metric kProviderUp{Kind::kGauge, "nodepool.provider.{provider}.up", "nodepool_provider_up",
                                    "1 while this launcher can use the provider, 0 while it cannot."};
inline constexpr Metric kProviderPaused{Kind::kGauge, "nodepool.provider.{provider}.paused",
                                        "nodepool_provider_paused",
                                        "1 while an operator has paused the provider, otherwise 0."};
inline constexpr Metric kBreakersOpen{Kind::kGauge, "nodepool.provider.{provider}.breakers_open",
                                      "nodepool_provider_breakers_open",
                                      "Open breakers of the provider, its pools and labels."};
inline constexpr Metric kProviderStartFailures{Kind::kCounter, "nodepool.provider.{provider}.start_failures",
                                               "nodepool_provider_start_failures_total",
                                               "Attempts to start the provider that failed."};
inline constexpr Metric kQueueLength{Kind::kGauge, "nodepool.launcher.{hostname}.zk.{queue}",
                                     "nodepool_launcher_zk_queue",
                                     "Kept for dashboards; there are no such queues, so always 0."};
inline constexpr Metric kHostUp{Kind::kGauge, "nodepool.provider.{provider}.host.{host~}.up",
                                "nodepool_provider_host_up",
                                "1 while machines can be made on the host, otherwise 0."};
inline constexpr Metric kHostInstances{Kind::kGauge, "nodepool.provider.{provider}.host.{host~}.instances",
                                       "nodepool_provider_host_instances",
                                       "Machines on the host, also those that Nodepool has not made."};
inline constexpr Metric kHostCores{Kind::kGauge, "nodepool.provider.{provider}.host.{host~}.cores",
                                   "nodepool_provider_host_cores",
                                   "Virtual CPUs of the machines on the host."};
inline constexpr Metric kHostMemory{Kind::kGauge, "nodepool.provider.{provider}.host.{host~}.ram",
                                    "nodepool_provider_host_ram_mebibytes",
                                    "Memory of the machines on the host, in MiB."};
inline constexpr Metric kHostCall{
    Kind::kCounter, "nodepool.provider.{provider}.host.{host~}.call.{call}.{result}",
    "nodepool_provider_host_calls_total",
    "Calls of the host's libvirt by what they do and how they ended: ok or failed."};
inline constexpr Metric kHostCallTime{
    Kind::kTiming, "nodepool.provider.{provider}.host.{host~}.call.{call}",
    "nodepool_provider_host_call_timer",
    "Time of a call of the host's libvirt; of one that has not answered, until it was given up."};
inline constexpr Metric kLeaked{Kind::kCounter, "nodepool.provider.{provider}.leaked.{kind}",
                                "nodepool_provider_leaked_total",
                                "Leaked resources that were deleted, by kind."};
inline constexpr Metric kLeakedOldSpelling{
    Kind::kCounter, "nodepool.provider.{provider}.leaked.{kind}", "",
    "The same under the spelling with capitals (INSTANCEs), sent as well."};
inline constexpr Metric kCleaned{
    Kind::kCounter, "nodepool.cleanup.{kind}", "nodepool_cleanup_total",
    "What the cleaners of this launcher removed or put right, by kind: deleted_node, deallocated_node, "
    "max_ready_age, max_hold_age, drained, unfinished_node, empty_node, lost_request, request_lock."};
inline constexpr Metric kMalformed{
    Kind::kCounter, "nodepool.malformed_records.{kind}", "nodepool_malformed_records_total",
    "Versions of records that could not be read, by kind: node, request, image, "
    "job, lease, pause, component."};

// Every metric above.
std::vector<const Metric*> All();

}  // namespace nodepool::launcher::stats

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
