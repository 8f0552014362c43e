#include "launcher/view.h"

#include <algorithm>
#include <boost/json/parse.hpp>

#include "async/deadline.h"
#include "async/task.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "driver/loading/config_follower.h"
#include "launcher/provider_manager.h"
#include "listing/status.h"
#include "model/image.h"
#include "model/node_request.h"

namespace nodepool::launcher {

namespace {

constexpr Duration kKept = std::chrono::hours(1);
constexpr std::size_t kMaxKept = 1000;

}  // namespace

FailedRequests::FailedRequests(const Loop& loop, store::RequestCache& requests) : loop_(loop) {
  auto keep_failed = [this](const RequestId&, const store::StoredRequest* before,
                            const store::StoredRequest* after) {
    if (after != nullptr || before->record.state != RequestState::kFailed) return;
    if (before->record.requestor != kMinReadyRequestor) Keep(*before);
  };
  subscription_ = requests.OnChange(keep_failed);
}

const std::map<RequestId, store::StoredRequest>& FailedRequests::Deleted() {
  DropOld();
  return requests_;
}

void FailedRequests::Keep(const store::StoredRequest& request) {
  store::StoredRequest kept = request;
  kept.record.requestor_data = {};
  kept.record.foreign = {};
  for (const std::string& reason : DeclineReasons(request.record)) AddDeclineReason(kept.record, reason);
  if (!requests_.emplace(request.id, std::move(kept)).second) return;
  deletions_.push_back({loop_.SteadyNow(), request.id});
  DropOld();
}

void FailedRequests::DropOld() {
  SteadyTime oldest = loop_.SteadyNow() - kKept;
  while (!deletions_.empty() && (deletions_.front().at <= oldest || deletions_.size() > kMaxKept)) {
    requests_.erase(deletions_.front().id);
    deletions_.pop_front();
  }
}

namespace {

namespace json = boost::json;

constexpr std::size_t kMaxSentence = 1'000;
constexpr std::size_t kMaxWord = 255;

std::string WordIn(const json::object& entry, std::string_view key) {
  return Excerpt(TextIn(entry, key), kMaxWord);
}

}  // namespace

Expected<PeerAnswer> ReadPeerAnswer(std::string_view answer, const std::string& hostname) {
  boost::system::error_code error;
  json::value parsed = json::parse(answer, error);
  const json::array* entries =
      error || !parsed.is_object() ? nullptr : ArrayIn(parsed.get_object(), "reasons");
  if (entries == nullptr) return Unexpected(Verdict::kInvalid, "the answer has no list of reasons");
  PeerAnswer reasons;
  for (const json::value& value : *entries) {
    const json::object* entry = value.if_object();
    if (entry == nullptr) return Unexpected(Verdict::kInvalid, "a reason of the answer is no object");
    if (reasons.size() == kMaxPeerReasons) break;
    std::string code = WordIn(*entry, "code");
    std::string text = Excerpt(TextIn(*entry, "text"), kMaxSentence);
    if (code.empty() || text.empty()) continue;
    PoolKey pool{ProviderName(WordIn(*entry, "provider")), PoolName(WordIn(*entry, "pool"))};
    reasons[RequestId(WordIn(*entry, "id"))] = {std::move(code), std::move(pool), std::move(text), hostname};
  }
  return reasons;
}

namespace {

constexpr Duration kAskPause = std::chrono::seconds(3);
constexpr Duration kAskTimeout = std::chrono::seconds(2);
constexpr Duration kWantedFor = std::chrono::seconds(15);
constexpr std::size_t kMaxPeers = 64;
constexpr std::size_t kMaxFailure = 200;

Task<PeerAnswer> AskFor(Loop& loop, AskPeer ask, std::string hostname, std::optional<WebServer> server) {
  if (!server) throw Error(Verdict::kFail, "it has no web server, or is of an older version");
  Task<std::string> question = ask(hostname, *server, kReasonsTarget);
  std::string answer =
      co_await WithDeadline(loop, loop.SteadyNow() + kAskTimeout, "its answer", std::move(question));
  Expected<PeerAnswer> reasons = ReadPeerAnswer(answer, hostname);
  if (!reasons) throw reasons.error();
  co_return std::move(*reasons);
}

}  // namespace

PeerReasons::PeerReasons(Context& context, std::function<std::string()> own_path)
    : context_(context),
      own_path_(std::move(own_path)),
      logger_("nodepool.NodePool"),
      tasks_(context.loop, logger_) {}

void PeerReasons::Want() {
  if (!ask_) return;
  wanted_until_ = context_.loop.SteadyNow() + kWantedFor;
  if (std::exchange(is_asking_, true)) return;
  tasks_.Spawn("ask the other launchers why requests wait", AskWhileWanted());
}

Task<> PeerReasons::AskWhileWanted() {
  while (context_.loop.SteadyNow() < wanted_until_) {
    AskAll();
    co_await context_.loop.SleepFor(kAskPause);
  }
  peers_.clear();
  is_asking_ = false;
}

// Launchers of the Python implementation have nothing to say; they lock no slots.
void PeerReasons::AskAll() {
  const std::map<std::string, Component>& components = context_.caches.components.all();
  std::erase_if(peers_, [&](const auto& peer) { return !components.contains(peer.first); });
  const std::string own = own_path_();
  for (const auto& [path, component] : components) {
    if (component.kind != ComponentKind::kLauncher || !component.locks_slots || path == own) continue;
    if (peers_.size() == kMaxPeers && !peers_.contains(path)) continue;
    Peer& peer = peers_[path];
    peer.hostname = component.hostname;
    if (std::exchange(peer.is_asked, true)) continue;
    tasks_.Spawn("ask the launcher on " + Excerpt(component.hostname),
                 Ask(path, component.hostname, component.web));
  }
}

Task<> PeerReasons::Ask(std::string path, std::string hostname, std::optional<WebServer> server) {
  Task<PeerAnswer> question = AskFor(context_.loop, ask_, std::move(hostname), server);
  Outcome<PeerAnswer> answer = co_await Attempt(std::move(question));
  auto known = peers_.find(path);
  if (known == peers_.end()) co_return;
  Peer& peer = known->second;
  peer.is_asked = false;
  peer.failure = answer ? "" : Excerpt(answer.error().message(), kMaxFailure);
  peer.reasons = answer ? std::move(*answer) : PeerAnswer();
}

bool PeerReasons::CouldServe(const Peer& peer, const NodeRequest& request) const {
  if (request.state == RequestState::kPending) return true;
  return std::ranges::any_of(context_.caches.components.Pools(), [&](const Component* pool) {
    if (pool->hostname != peer.hostname || request.WasDeclinedBy(pool->id)) return false;
    return std::ranges::all_of(request.node_types, [&](const LabelName& label) {
      return std::ranges::find(pool->supported_labels, label) != pool->supported_labels.end();
    });
  });
}

void PeerReasons::AppendTo(std::vector<sched::RequestReason>& reasons, const RequestId& id,
                           const NodeRequest& request) const {
  for (const auto& [path, peer] : peers_) {
    if (auto known = peer.reasons.find(id); known != peer.reasons.end()) reasons.push_back(known->second);
    if (!peer.failure.empty() && CouldServe(peer, request))
      reasons.push_back(sched::SilentLauncher(Excerpt(peer.hostname), peer.failure));
  }
}

std::string View::WhyNotReady() const {
  std::vector<std::string> missing;
  for (const ProviderName& name : providers_.Managed()) {
    const ProviderHealth& health = providers_.HealthOf(name);
    if (health.is_up) continue;
    missing.push_back(health.fault.empty()
                          ? fmt::format("Provider {} is starting.", name)
                          : fmt::format("Provider {} cannot be used: {}.", name, health.fault));
  }
  bool is_connected = context_.store.tree.client().state() == zk::SessionState::kConnected;
  if (!providers_.Managed().empty() && !is_connected) missing.emplace_back("ZooKeeper cannot be reached.");
  if (missing.empty()) return "The launcher is starting or stopping.";
  return Join(missing, " ");
}

void View::ForEachRequest(const std::function<bool(const RequestStatus&)>& see,
                          const RequestId& after) const {
  const std::map<RequestId, store::StoredRequest>& deleted = failed_.Deleted();
  auto next = deleted.upper_bound(after);
  auto see_deleted = [&] { return see({next->first, &next->second.record, std::nullopt, {}, true}); };
  const auto& all = context_.caches.requests.all();
  for (auto it = all.upper_bound(after); it != all.end(); ++it) {
    const auto& [id, request] = *it;
    for (; next != deleted.end() && next->first < id; ++next) {
      if (!see_deleted()) return;
    }
    if (next != deleted.end() && next->first == id) ++next;
    if (!see(StatusOf(request))) return;
  }
  for (; next != deleted.end(); ++next) {
    if (!see_deleted()) return;
  }
}

std::optional<RequestStatus> View::FindRequest(const RequestId& id) const {
  if (const store::StoredRequest* request = context_.caches.requests.Find(id)) return StatusOf(*request);
  const std::map<RequestId, store::StoredRequest>& deleted = failed_.Deleted();
  auto found = deleted.find(id);
  if (found == deleted.end()) return std::nullopt;
  return RequestStatus{id, &found->second.record, std::nullopt, {}, true};
}

std::optional<WallTime> View::NextBuild(const ImageName& image) const {
  const auto& images = context_.config->common.diskimages;
  auto configured = images.find(image);
  bool is_built = configured != images.end() && !configured->second.is_paused &&
                  !context_.caches.images.paused().contains(image);
  if (!is_built) return std::nullopt;
  std::optional<WallTime> newest;
  const auto& builds = context_.caches.images.builds();
  for (auto it = builds.lower_bound({image, BuildId()}); it != builds.end() && it->first.image == image;
       ++it) {
    const ImageBuild& build = it->second.record;
    if (build.state == ImageState::kReady) newest = std::max(newest, std::optional(build.state_time));
  }
  if (!newest) return std::nullopt;
  return *newest + configured->second.rebuild_age;
}

RequestStatus View::StatusOf(const store::StoredRequest& request) const {
  peers_.Want();
  return KnownStatusOf(request);
}

RequestStatus View::KnownStatusOf(const store::StoredRequest& request) const {
  RequestStatus status = OwnStatusOf(request);
  const std::optional<RequestState>& state = request.record.state;
  if (state != RequestState::kRequested && state != RequestState::kPending) return status;
  std::vector<sched::RequestReason> reasons = OwnReasons(status);
  if (!status.accepted_by) peers_.AppendTo(reasons, request.id, request.record);
  if (const sched::RequestReason* decides = sched::DecidingReason(reasons)) status.reason = *decides;
  return status;
}

std::vector<sched::RequestReason> View::OwnReasons(const RequestStatus& status) const {
  std::vector<sched::RequestReason> reasons;
  for (const WaitReason& wait : status.waits) {
    reasons.push_back(Sentence(wait));
    reasons.back().launcher = context_.hostname;
  }
  return reasons;
}

RequestStatus View::OwnStatusOf(const store::StoredRequest& request) const {
  RequestStatus status{request.id, &request.record, std::nullopt, {}};
  if (request.record.state == RequestState::kRequested) {
    if (const sched::Answers* answers = scheduler_.WaitingOf(sched::ShapeOf(request.record))) {
      for (const auto& [pool, decision] : *answers) status.waits.push_back(ReasonIn(pool, decision));
    }
    AddPoolsThatDoNotRun(status);
  } else if (request.record.state == RequestState::kPending) {
    auto ask = [&](const PoolWorker& pool) {
      const RequestRun* run = pool.FindRun(request.id);
      if (run == nullptr) return;
      status.accepted_by = pool.key();
      if (pool.pool().is_away()) {
        status.waits.push_back(UnusableProvider(pool.key(), pool.pool().ProviderFault()));
      } else if (run->waits_for() != nullptr) {
        status.waits.push_back(ReasonOfRun(pool, *run->waits_for()));
      }
    };
    for (const auto& [key, pool] : pools_) ask(*pool);
    for (const auto& pool : draining_) ask(*pool);
  }
  return status;
}

// What operators should know of the provider may be why it has no free node, such as hosts that do not
// answer.
WaitReason View::ReasonIn(const PoolKey& pool, const sched::Decision& decision) const {
  WaitReason reason = ReasonOf(pool, decision);
  if (decision.reason != sched::Reason::kNoFreeNode || !providers_.Manages(pool.provider)) return reason;
  std::vector<std::string> notices = providers_.ReportOf(pool.provider).notices;
  if (!notices.empty()) reason.text += ": " + Join(notices, "; ");
  return reason;
}

// Pools of providers that could never be started decide about nothing.
void View::AddPoolsThatDoNotRun(RequestStatus& status) const {
  for (const ProviderName& name : providers_.Managed()) {
    const ProviderHealth& health = providers_.HealthOf(name);
    if (health.is_up) continue;
    for (const auto& [pool_name, pool] : providers_.ConfigOf(name).pools) {
      PoolKey key{name, pool_name};
      bool is_running = pools_.contains(key) && pools_.at(key)->is_started();
      bool has_labels = std::ranges::all_of(
          status.record->node_types, [&](const LabelName& label) { return pool->labels.contains(label); });
      if (!is_running && has_labels) status.waits.push_back(UnusableProvider(key, health.fault));
    }
  }
}

WaitReason View::ReasonOfRun(const PoolWorker& pool, const sched::FillPlan& plan) const {
  constexpr Duration kKept = std::chrono::milliseconds(100);
  SteadyTime now = context_.loop.SteadyNow();
  std::erase_if(seen_, [&](const auto& seen) { return now - seen.second.at >= kKept; });
  auto seen = seen_.find(pool.key());
  if (seen == seen_.end()) seen = seen_.emplace(pool.key(), SeenPool{now, pool.pool().View()}).first;
  return ReasonOf(seen->second.view, plan);
}

void View::ForEachReason(const std::function<bool(const ReportedReason&)>& see,
                         const RequestId& after) const {
  const auto& all = context_.caches.requests.all();
  for (auto it = all.upper_bound(after); it != all.end(); ++it) {
    std::vector<sched::RequestReason> reasons = OwnReasons(OwnStatusOf(it->second));
    const sched::RequestReason* decides = sched::DecidingReason(reasons);
    if (decides == nullptr || sched::IsLeftToOthers(decides->code)) continue;
    if (!see({it->first, *decides})) return;
  }
}

listing::Problems View::Problems() const {
  constexpr std::size_t kMaxReasons = 500;
  WallTime now = context_.loop.Now();
  listing::Reasons why;
  for (const store::StoredRequest* request : listing::WaitingRequests(context_.caches.requests)) {
    bool waits_for_long = now - listing::WaitsSince(request->record) >= listing::kLongWait;
    if (!waits_for_long || why.size() == kMaxReasons) break;
    RequestStatus status = KnownStatusOf(*request);
    if (status.reason) why[request->id] = status.reason->text;
  }
  listing::Configured configured = driver::ConfiguredBy(*context_.config);
  return listing::FindProblems({configured, context_.caches, std::move(why), now});
}

std::vector<ProviderStatus> View::Providers() const {
  std::vector<ProviderStatus> all;
  for (const ProviderName& name : providers_.Managed()) all.push_back(StatusOf(name));
  return all;
}

std::vector<ProviderStatus> View::ClusterProviders() const {
  std::map<ProviderName, ProviderStatus> announced = AnnouncedProviders(context_.caches);
  for (ProviderStatus& own : Providers()) {
    ProviderStatus& status = announced[own.name];
    std::swap(status, own);
    status.launchers = std::move(own.launchers);
    if (std::ranges::find(status.launchers, context_.hostname) == status.launchers.end())
      status.launchers.insert(std::ranges::lower_bound(status.launchers, context_.hostname),
                              context_.hostname);
    for (PoolStatus& pool : own.pools) {
      bool is_known = std::ranges::find(status.pools, pool.name, &PoolStatus::name) != status.pools.end();
      if (!is_known) status.pools.push_back(std::move(pool));
    }
  }
  std::vector<ProviderStatus> all;
  for (auto& [name, status] : announced) all.push_back(std::move(status));
  return all;
}

ProviderStatus View::StatusOf(const ProviderName& name) const {
  ProviderStatus status;
  status.name = name;
  status.driver = providers_.ConfigOf(name).driver;
  ProviderReport report = providers_.ReportOf(name);
  status.state = report.state;
  status.since = report.since;
  status.notices = report.notices;
  status.is_draining = !context_.config->providers.contains(name);
  if (const ProviderPause* pause = context_.caches.pauses.Find(name)) status.pause = *pause;
  status.breakers = OpenBreakersOf(context_.caches.breakers, name);
  for (const auto& [budget, rate] : providers_.ApiRatesOf(name)) status.api_rates.push_back(rate);
  status.health = providers_.HealthOf(name);
  if (status.health.next_attempt) {
    status.next_start = std::max(Duration::zero(), *status.health.next_attempt - context_.loop.SteadyNow());
  }
  status.max_concurrency = providers_.ConfigOf(name).max_concurrency;
  status.launches = context_.ledger.LaunchesInProgress(name);
  status.reserved = context_.ledger.PendingIn(name);
  std::map<PoolName, std::map<std::string_view, int>> nodes;
  for (const NodeId& id : context_.caches.nodes.OfProvider(name)) {
    const Node& node = context_.caches.nodes.Find(id)->record;
    std::string_view state = node.state ? ToString(*node.state) : "";
    ++status.nodes[state];
    ++nodes[node.pool][state];
  }
  auto add = [&](const PoolWorker& worker, bool is_draining) {
    if (worker.key().provider != name) return;
    sched::Budget budget = worker.pool().ProviderBudget();
    if (!budget.limit.empty()) status.limit = std::move(budget.limit);
    if (!budget.used.empty()) status.used = std::move(budget.used);
    PoolStatus& pool = status.pools.emplace_back(StatusOf(worker));
    pool.is_draining = is_draining;
    pool.nodes = std::move(nodes[worker.key().pool]);
  };
  for (const auto& [key, worker] : pools_) add(*worker, false);
  for (const auto& worker : draining_) add(*worker, true);
  return status;
}

PoolStatus View::StatusOf(const PoolWorker& worker) const {
  const Pool& pool = worker.pool();
  PoolStatus status;
  status.name = pool.key().pool;
  status.launcher = pool.launcher_id();
  status.is_registered = pool.is_registered();
  status.is_waiting = pool.is_paused();
  status.priority = pool.config()->priority;
  status.requests = worker.request_count();
  status.limit = pool.config()->Limit().resources();
  status.used = pool.Used();
  status.reserved = context_.ledger.PendingIn(pool.key());
  for (const auto& [name, config] : pool.config()->labels) {
    if (IsValidationLabel(name)) continue;
    std::size_t free_nodes = context_.caches.nodes.FreeNodes(pool.key(), name).size();
    LabelStatus& label = status.labels.emplace_back(name, pool.IsLabelAvailable(name), free_nodes);
    if (auto fault = pool.faults().find(name); fault != pool.faults().end()) label.fault = fault->second;
  }
  return status;
}

}  // namespace nodepool::launcher
