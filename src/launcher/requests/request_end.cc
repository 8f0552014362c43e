#include "launcher/requests/request_run.h"

// How a request ends: fulfilled, declined or given back (launcher.md 9, 11).

namespace nodepool::launcher {

using store::Change;

Task<> RequestRun::Fulfil() {
  // nodes[i] is a node for node_types[i] (launcher.md 11, step 8).
  std::vector<NodeId> nodes = nodes_.InOrder(request_->record().node_types);
  WallTime now = context_.loop.Now();
  auto fulfil = [now, nodes](NodeRequest& request) {
    request.SetState(RequestState::kFulfilled, now);
    request.nodes = nodes;
    return Change::kWrite;
  };
  bool is_done = co_await request_->Fulfil(nodes_.Locked(), fulfil);
  if (!is_done) co_return co_await RequestIsGone();
  logger_.Info("Fulfilled with {}", fmt::join(nodes, ","));
  nodes_.HandedOver();
  request_.reset();
}

Task<> RequestRun::RequestIsGone() {
  logger_.Info("The request was deleted by its client; its nodes are free again");
  co_await nodes_.Release(id());
  co_await request_->Unlock();
  request_.reset();
}

Task<> RequestRun::Decline(std::string reason) {
  logger_.Info("Declining: {}", reason);
  co_await nodes_.Release(id());
  std::vector<sched::Decliner> self{pool_.DeclineFor(reason)};
  WallTime now = context_.loop.Now();
  const sched::Registry* registry = &pool_.cluster().registry;
  auto decline = [self, now, registry](NodeRequest& request) {
    sched::Decline(request, self, *registry, now);
    return Change::kWrite;
  };
  co_await request_->UpdateAndUnlock(decline);
  request_.reset();
}

Task<> RequestRun::GiveBack() {
  co_await nodes_.Release(id());
  WallTime now = context_.loop.Now();
  auto give_back = [now](NodeRequest& request) {
    if (request.state != RequestState::kPending) return Change::kSkip;
    request.SetState(RequestState::kRequested, now);
    return Change::kWrite;
  };
  co_await request_->UpdateAndUnlock(give_back);
  logger_.Info("Given back");
  request_.reset();
}

// Ends the run of a request when serving it has failed or was cancelled.
Task<> RequestRun::LetGo(const Failure& failure) {
  co_await nodes_.Stop();
  if (!request_) co_return;
  if (failure.verdict() == Verdict::kLostSession || !request_->is_held()) {
    logger_.Warning("Dropped: the ZooKeeper session that held the request's lock is over");
    co_return;
  }
  Task<> end = failure.verdict() == Verdict::kCancelled ? GiveBack() : Decline(failure.message());
  Outcome<> let_go = co_await Attempt(std::move(end));
  if (!let_go) logger_.Error("The request could not be given back: {}", let_go.error().message());
}

}  // namespace nodepool::launcher
