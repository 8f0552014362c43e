#include "bench/load_client.h"

namespace nodepool::bench {

using store::Change;

LoadClient::LoadClient(Loop& loop, zk::Client& client, Random& random)
    : loop_(loop),
      store_(loop, client, random),
      requests_(loop, client),
      registration_(requests_.OnChange(
          [this](const RequestId& id, const store::StoredRequest*, const store::StoredRequest* after) {
            auto waiting = waiting_.find(id);
            if (waiting == waiting_.end() || after == nullptr) return;
            RequestState state = after->record.state.value_or(RequestState::kRequested);
            if (state == RequestState::kFulfilled || state == RequestState::kFailed) {
              waiting->second->Set(after->record);
            }
          })),
      tasks_(loop, log::Logger("bench")) {}

LoadClient::~LoadClient() = default;

Task<> LoadClient::Start() {
  requests_.Start();
  co_await requests_.WaitSynced();
}

Task<> LoadClient::Stop() {
  co_await tasks_.Stop();
  co_await requests_.Stop();
}

double LoadClient::Elapsed() const {
  return std::chrono::duration<double>(loop_.SteadyNow() - start_).count();
}

Task<std::vector<Timeline>> LoadClient::Run(Load load) {
  std::vector<Timeline> timelines(static_cast<std::size_t>(load.count));
  start_ = loop_.SteadyNow();
  without_nodes_ = load.count;
  all_served_.Reset();
  for (int i = 0; i < load.count; ++i) {
    if (load.rate > 0) {
      Duration offset = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(i / load.rate));
      co_await loop_.SleepUntil(start_ + offset);
    }
    tasks_.Spawn("request", One(load, timelines[static_cast<std::size_t>(i)]));
  }
  co_await tasks_.Join();
  co_return timelines;
}

Task<> LoadClient::One(const Load& load, Timeline& timeline) {
  NodeRequest request;
  request.SetState(RequestState::kRequested, loop_.Now());
  request.node_types = load.labels;
  request.requestor = "load";
  timeline.created = Elapsed();
  RequestId id = co_await store_.requests.Create("200", std::move(request), false);
  timeline.answered = Elapsed();
  NodeRequest outcome = co_await AwaitOutcome(id);
  timeline.fulfilled = Elapsed();
  timeline.is_failed = outcome.state == RequestState::kFailed;
  if (--without_nodes_ == 0) all_served_.Set();
  if (load.afterwards == Afterwards::kKeepReady) co_await all_served_.Wait();
  if (timeline.is_failed) {
    co_await store_.requests.Delete(id);
  } else if (load.afterwards != Afterwards::kNothing) {
    co_await Finish(id, outcome.nodes, load.afterwards);
  }
  timeline.returned = Elapsed();
}

Task<> LoadClient::Finish(RequestId request, std::vector<NodeId> nodes, Afterwards afterwards) {
  std::vector<store::LockedNode> locked;
  for (const NodeId& id : nodes) {
    auto node = co_await store_.nodes.TryLock(id);
    if (node) locked.push_back(std::move(*node));
  }
  if (afterwards == Afterwards::kKeepReady) {
    for (store::LockedNode& node : locked) co_await Leave(node, afterwards);  // else they go with the request
  }
  co_await store_.requests.Delete(request);
  for (store::LockedNode& node : locked) {
    if (afterwards != Afterwards::kKeepReady) co_await Leave(node, afterwards);
    co_await node.Unlock();
  }
}

Task<> LoadClient::Leave(store::LockedNode& node, Afterwards afterwards) {
  WallTime now = loop_.Now();
  std::vector<NodeState> states;
  if (afterwards == Afterwards::kUse) states = {NodeState::kInUse, NodeState::kUsed};
  if (afterwards == Afterwards::kHold) states = {NodeState::kHold};
  if (afterwards == Afterwards::kKeepReady) states = {NodeState::kReady};
  for (NodeState state : states) {
    auto set = [state, now](Node& record) {
      record.SetState(state, now);
      if (state == NodeState::kReady) record.Free();
      return Change::kWrite;
    };
    co_await node.Update(set);
  }
}

Task<NodeRequest> LoadClient::AwaitOutcome(RequestId id) {
  auto outcome = std::make_shared<OneShot<NodeRequest>>();
  waiting_[id] = outcome;
  // The cache may have shown it while the create's answer was on its way.
  if (const store::StoredRequest* seen = requests_.Find(id)) {
    if (seen->record.state == RequestState::kFulfilled || seen->record.state == RequestState::kFailed) {
      outcome->Set(seen->record);
    }
  }
  NodeRequest record = co_await outcome->Take();
  waiting_.erase(id);
  co_return record;
}

}  // namespace nodepool::bench
