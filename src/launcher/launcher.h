#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/reconciler.h"
#include "async/task_group.h"
#include "base/subscription.h"
#include "driver/loading/load_config.h"
#include "launcher/cleaners/cleanup_worker.h"
#include "launcher/cleaners/deleted_node_worker.h"
#include "launcher/context.h"
#include "launcher/jobs/job_events.h"
#include "launcher/leases/lease_desk.h"
#include "launcher/leases/lease_keeper.h"
#include "launcher/min_ready.h"
#include "launcher/provider_manager.h"
#include "launcher/requests/request_run.h"
#include "launcher/scheduler.h"
#include "launcher/stats/stats_worker.h"
#include "launcher/view.h"
#include "store/cache/caches.h"

namespace nodepool::launcher {

// The daemon: a list of loops over shared caches. It starts them in order, stops them in
// reverse, has them follow the configuration and notifies them when the ZooKeeper session is lost.
class Launcher {
 public:
  struct Options {
    std::string hostname;  // short, as the operating system reports it
    std::string fqdn;
    Intervals intervals;
    Duties duties = {};
  };

  // All arguments outlive the launcher.
  Launcher(Loop& loop, Random& random, BlockingPool& blocking_pool, metrics::Metrics& metrics,
           zk::Client& client, driver::Registry& drivers, std::shared_ptr<const driver::LoadedConfig> config,
           Options options);
  ~Launcher();  // call Stop() first

  // Ends when the caches are complete, the start of every provider was tried and the pools of those that
  // started are announced; from then on requests are served.
  Task<> Start();

  // Gives accepted requests back, removes the announcements, stops the providers
  // (D-24), all within the graceful stop's time. The session stays open. What could
  // not end in time, as when ZooKeeper is away, ends when the client was closed: call
  // it again then, before destruction.
  Task<> Stop();

  // Puts another configuration in force (launcher.md 4), in the background. Unchanged providers and pools
  // continue undisturbed; changed providers are replaced while what they have begun finishes; removed ones
  // are drained and stopped (D-31). Call after Start() has ended.
  void Reconfigure(std::shared_ptr<const driver::LoadedConfig> config);

  // The changed configuration has a fault, so that the previous one stays in force; none: it can be used
  // again. Announced in ZooKeeper.
  void ConfigurationRejected(std::optional<RejectedConfiguration> rejected);
  const std::optional<RejectedConfiguration>& rejected() const { return rejected_; }

  // Whether every configured provider can be used and is served (D-64).
  bool is_ready() const;
  // What is missing, for operators.
  std::string WhyNotReady() const { return view_.WhyNotReady(); }

  // Shows the requests of the cluster, and those that failed in the last hour and are deleted already, by id,
  // for as long as `see` wants more.
  void ForEachRequest(const std::function<bool(const RequestStatus&)>& see,
                      const RequestId& after = {}) const {
    view_.ForEachRequest(see, after);
  }

  // One of those; nullopt: there is none. Valid until the next change.
  std::optional<RequestStatus> FindRequest(const RequestId& id) const { return view_.FindRequest(id); }

  // When the newest build of the image is older than its rebuild-age; nullopt: that is not known.
  std::optional<WallTime> NextBuild(const ImageName& image) const { return view_.NextBuild(image); }

  // The providers of this launcher, by name.
  std::vector<ProviderStatus> Providers() const { return view_.Providers(); }
  // Those of all launchers, by name.
  std::vector<ProviderStatus> ClusterProviders() const { return view_.ClusterProviders(); }
  // Why requests wait as this launcher alone says (View::ForEachReason).
  void ForEachReason(const std::function<bool(const ReportedReason&)>& see,
                     const RequestId& after = {}) const {
    view_.ForEachReason(see, after);
  }

  // Announces where this launcher's web server is, and how others are asked. Call before Start().
  void HasWebServer(WebServer server, AskPeer ask);

  // What operators should check, of the whole cluster; while the records are complete.
  listing::Problems Problems() const { return view_.Problems(); }

  // The cluster's records as this launcher sees them.
  const store::Caches& records() const { return caches_; }

  // For operators' changes: the records, and the configuration in force now.
  store::Store& store() { return store_; }
  std::shared_ptr<const driver::LoadedConfig> config() const { return context_.config; }

  // For what web servers read from disk.
  BlockingPool& blocking_pool() const { return context_.blocking_pool; }

  // How often this launcher has decided about requests.
  std::uint64_t decision_count() const { return scheduler_.decision_count(); }
  // How often a pool was asked about a request for them.
  std::uint64_t question_count() const { return scheduler_.question_count(); }
  // How often what a pool offers was read for them.
  std::uint64_t view_count() const { return scheduler_.view_count(); }

  // Ends when the records show what was changed before this was called.
  Task<> CatchUp();

  // Makes and changes leases.
  LeaseDesk& lease_desk() { return lease_desk_; }

  // Receives job events.
  JobEvents& job_events() { return job_events_; }

  // Sets every gauge of the cluster and of this launcher.
  void ReportGauges(metrics::Sink& to) const { stats_.Report(to); }

 private:
  void SessionChanged(zk::SessionState state);
  void ProviderStarted(const ProviderName& name);
  Component Announcement() const;
  // Announces the providers' states in ZooKeeper where they have changed.
  void Announce();
  void CapacityChanged();
  void CapacityChangedIn(const ProviderName& provider);
  void FollowCapacity();
  void HealthChanged();
  void AnnounceFaults();
  void BreakersChanged();
  void PauseChanged(const ProviderName& provider, const ProviderPause* pause);
  std::vector<std::shared_ptr<PoolWorker>> AddMissingPools();
  void StartMissingPools();
  Task<> StartPool(std::shared_ptr<PoolWorker> worker);
  Task<> DrainPool(std::shared_ptr<PoolWorker> worker);
  Task<> DrainProvider(ProviderName name);
  bool IsDraining(const ProviderName& name) const;
  void PoolsChanged();
  LabelOffer OfferOf(const LabelName& label) const;
  Breakers::Launcher ForBreakers() const;

  Options options_;
  log::Logger logger_;
  store::Store store_;
  store::Caches caches_;
  Ledger ledger_;
  Breakers breakers_;
  Context context_;
  ClusterView cluster_;
  ProviderManager providers_;
  bool is_serving_ = false;
  std::optional<WebServer> web_;
  std::optional<RejectedConfiguration> rejected_;
  MinReady::Shortages shortages_;
  store::ComponentEntry entry_;  // made from all of the above
  LostRequests lost_requests_;
  Scheduler scheduler_;
  std::map<PoolKey, std::shared_ptr<PoolWorker>> pools_;
  std::set<std::shared_ptr<PoolWorker>> draining_;
  WaitList drained_;
  FailedRequests failed_requests_;
  PeerReasons peers_;
  View view_;
  DeletedNodeWorker deleted_nodes_;
  CleanupWorker cleanup_;
  DrainWorker drains_;
  MinReady min_ready_;
  WakeLoop label_faults_;
  StatsWorker stats_;
  JobEvents job_events_;
  LeaseKeeper leases_;
  LeaseDesk lease_desk_;
  Loops loops_;  // of the above
  TaskGroup tasks_;
  Subscription session_;
  Subscription pauses_;
  Subscription images_;
};

}  // namespace nodepool::launcher
