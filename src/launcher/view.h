#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/peers/peer_reasons.h"
#include "launcher/requests/failed_requests.h"
#include "launcher/requests/wait_reasons.h"
#include "launcher/scheduler.h"
#include "launcher/status.h"
#include "listing/problem.h"

namespace nodepool::launcher {

// What a launcher shows of its providers, pools and requests to programs and operators. Changes nothing.
class View {
 public:
  using Pools = std::map<PoolKey, std::shared_ptr<PoolWorker>>;
  using DrainingPools = std::set<std::shared_ptr<PoolWorker>>;

  // All arguments outlive it.
  View(const Context& context, const ProviderManager& providers, const Scheduler& scheduler,
       FailedRequests& failed, const Pools& pools, const DrainingPools& draining, PeerReasons& peers)
      : context_(context),
        providers_(providers),
        scheduler_(scheduler),
        failed_(failed),
        pools_(pools),
        draining_(draining),
        peers_(peers) {}

  // What is missing when not every provider is up and serving, for a person.
  std::string WhyNotReady() const;
  // Shows the requests of the cluster, and those that failed in the last hour and are deleted already, by id,
  // for as long as `see` wants more.
  void ForEachRequest(const std::function<bool(const RequestStatus&)>& see, const RequestId& after) const;
  // One of those; nullopt: there is none. Valid until the next change.
  std::optional<RequestStatus> FindRequest(const RequestId& id) const;
  // When the newest build of the image is older than its rebuild-age. nullopt: it was never built, is paused,
  // or this launcher's configuration does not have it.
  std::optional<WallTime> NextBuild(const ImageName& image) const;
  // The providers of this launcher, by name.
  std::vector<ProviderStatus> Providers() const;
  // Those of all launchers, by name.
  std::vector<ProviderStatus> ClusterProviders() const;
  // Why requests wait as this launcher alone says, by id of the request, but for those that it leaves to
  // others, for as long as `see` wants more.
  void ForEachReason(const std::function<bool(const ReportedReason&)>& see, const RequestId& after) const;

  // What operators should check, of the whole cluster (listing/find_problems.h), while the records are
  // complete. The reasons of the 500 requests that wait for longest are known.
  listing::Problems Problems() const;

 private:
  RequestStatus StatusOf(const store::StoredRequest& request) const;
  // The same of what is known of other launchers already.
  RequestStatus KnownStatusOf(const store::StoredRequest& request) const;
  RequestStatus OwnStatusOf(const store::StoredRequest& request) const;
  std::vector<sched::RequestReason> OwnReasons(const RequestStatus& status) const;
  void AddPoolsThatDoNotRun(RequestStatus& status) const;
  WaitReason ReasonIn(const PoolKey& pool, const sched::Decision& decision) const;
  WaitReason ReasonOfRun(const PoolWorker& pool, const sched::FillPlan& plan) const;
  ProviderStatus StatusOf(const ProviderName& name) const;
  PoolStatus StatusOf(const PoolWorker& worker) const;

  const Context& context_;
  const ProviderManager& providers_;
  const Scheduler& scheduler_;
  FailedRequests& failed_;
  const Pools& pools_;
  const DrainingPools& draining_;
  PeerReasons& peers_;
  // What requests see of a pool, made anew once in 100 ms at most: many wait for the same pool.
  struct SeenPool {
    SteadyTime at;
    sched::PoolView view;
  };
  mutable std::map<PoolKey, SeenPool> seen_;
};

}  // namespace nodepool::launcher
