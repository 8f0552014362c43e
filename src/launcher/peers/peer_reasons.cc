#include "launcher/peers/peer_reasons.h"

#include <algorithm>

#include "async/attempt.h"
#include "async/deadline.h"
#include "base/text.h"

namespace nodepool::launcher {
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

}  // namespace nodepool::launcher
