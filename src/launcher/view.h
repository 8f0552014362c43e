#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "async/loop.h"
#include "async/task_group.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/subscription.h"
#include "launcher/context.h"
#include "launcher/provider_manager.h"
#include "launcher/requests/wait_reasons.h"
#include "launcher/scheduler.h"
#include "listing/status.h"
#include "model/component.h"
#include "sched/requests/reason.h"
#include "store/cache/cached_records.h"

namespace nodepool::launcher {

// The requests that have failed, whoever declined them, and that their clients have deleted since, for an
// operator who asks why: those of the last hour, at most a thousand. Those for min-ready are not kept; they
// fail again and again while a cloud is full.
class FailedRequests {
 public:
  // Both outlive this.
  FailedRequests(const Loop& loop, store::RequestCache& requests);

  // By id; `requestor_data` and unknown keys but the reasons are left out.
  const std::map<RequestId, store::StoredRequest>& Deleted();

 private:
  struct Deletion {
    SteadyTime at;
    RequestId id;
  };

  void Keep(const store::StoredRequest& request);
  void DropOld();

  const Loop& loop_;
  std::map<RequestId, store::StoredRequest> requests_;
  std::deque<Deletion> deletions_;  // of `requests_`, oldest first
  Subscription subscription_;
};

// Where a launcher reports why requests wait, and how many at most another launcher asks for.
inline constexpr const char* kReasonsTarget = "/api/v1/reasons?limit=500";
inline constexpr std::size_t kMaxPeerReasons = 500;
inline constexpr std::size_t kMaxPeerAnswer = 1 << 20;  // bytes

using PeerAnswer = std::map<RequestId, sched::RequestReason>;

// What the launcher on the host answered. It is trusted no more than records are: entries beyond the limit
// are left out, texts are cut and made visible. Error(kInvalid) says what is wrong with the answer.
Expected<PeerAnswer> ReadPeerAnswer(std::string_view answer, const std::string& hostname);

// Sends GET `target` to the web server of the launcher on the host, and returns the body of a good answer of
// at most kMaxPeerAnswer bytes; throws on any failure.
using AskPeer = std::function<Task<std::string>(std::string hostname, WebServer server, std::string target)>;

// Why requests wait according to the other launchers.
//
// While somebody wants to know, each of them is asked for all its reasons every three seconds, whatever the
// number of requests; what they said is dropped when nobody has wanted it for 15 seconds. A launcher that is
// slow or dead delays nobody: it is asked again when its time-out of two seconds is over, and counts as
// silent meanwhile. At most 64 are asked, those of the first names.
class PeerReasons {
 public:
  // `context` outlives it. `own_path` returns the path of this launcher's own announcement.
  PeerReasons(Context& context, std::function<std::string()> own_path);

  // Until then nobody is asked.
  void AskBy(AskPeer ask) { ask_ = std::move(ask); }
  // Somebody wants to know now.
  void Want();
  // Appends what others say of the request, and that those do not answer which could say it: they offer its
  // labels, or, where it is accepted by another launcher, any of them may have it.
  void AppendTo(std::vector<sched::RequestReason>& reasons, const RequestId& id,
                const NodeRequest& request) const;
  Task<> Stop() { return tasks_.Stop(); }

 private:
  struct Peer {
    std::string hostname;
    PeerAnswer reasons;
    std::string failure;    // why the last question got no answer; empty: it got one, or was the first
    bool is_asked = false;  // a question is under way
  };

  Task<> AskWhileWanted();
  void AskAll();
  Task<> Ask(std::string path, std::string hostname, std::optional<WebServer> server);
  bool CouldServe(const Peer& peer, const NodeRequest& request) const;

  Context& context_;
  std::function<std::string()> own_path_;
  log::Logger logger_;
  AskPeer ask_;
  std::map<std::string, Peer> peers_;  // by path of the announcement
  SteadyTime wanted_until_{};
  bool is_asking_ = false;
  TaskGroup tasks_;
};

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

  // What operators should check, of the whole cluster (listing/status.h), while the records are
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
