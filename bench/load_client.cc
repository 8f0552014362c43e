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

Task<std::vector<Timeline>> LoadClient::Run(int count, double rate, LabelName label) {
  std::vector<Timeline> timelines(static_cast<std::size_t>(count));
  start_ = loop_.SteadyNow();
  for (int i = 0; i < count; ++i) {
    if (rate > 0) {
      Duration offset = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(i / rate));
      co_await loop_.SleepUntil(start_ + offset);
    }
    tasks_.Spawn("request", One(label, timelines[static_cast<std::size_t>(i)]));
  }
  co_await tasks_.Join();
  co_return timelines;
}

Task<> LoadClient::One(LabelName label, Timeline& timeline) {
  NodeRequest request;
  request.SetState(RequestState::kRequested, loop_.Now());
  request.node_types = {label};
  request.requestor = "load";
  timeline.created = Elapsed();
  RequestId id = co_await store_.requests.Create("200", std::move(request), false);
  NodeRequest outcome = co_await AwaitOutcome(id);
  timeline.fulfilled = Elapsed();
  timeline.is_failed = outcome.state == RequestState::kFailed;
  std::vector<NodeId> nodes = outcome.nodes;
  if (timeline.is_failed) {
    co_await store_.requests.Delete(id);
  } else {
    auto locked = co_await store_.nodes.TryLock(nodes.front());
    co_await store_.requests.Delete(id);
    if (locked) {
      WallTime now = loop_.Now();
      for (NodeState state : {NodeState::kInUse, NodeState::kUsed}) {
        auto set = [state, now](Node& node) {
          node.SetState(state, now);
          return Change::kWrite;
        };
        co_await locked->Update(set);
      }
      co_await locked->Unlock();
    }
  }
  timeline.returned = Elapsed();
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
