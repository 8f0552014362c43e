#include <algorithm>

#include "launcher/handler.h"

// How a handler lets its request go: fulfilled, declined or given back (launcher.md 9, 11).

namespace nodepool::launcher {

using store::Change;

Task<> Handler::Fulfil() {
  // nodes[i] is a node for node_types[i] (launcher.md 11, step 8).
  std::vector<std::shared_ptr<Slot>> left = slots_;
  std::vector<NodeId> nodes;
  for (const LabelName& label : request_->record().node_types) {
    auto slot = std::find_if(left.begin(), left.end(), [&](const auto& s) { return s->label == label; });
    nodes.push_back((*slot)->node->id());
    left.erase(slot);
  }
  std::vector<store::LockedNode*> locked;
  for (const auto& slot : slots_) locked.push_back(&*slot->node);
  WallTime now = context_.loop.Now();
  auto fulfil = [now, nodes](NodeRequest& request) {
    request.SetState(RequestState::kFulfilled, now);
    request.nodes = nodes;
    return Change::kWrite;
  };
  bool is_done = co_await request_->Fulfil(std::move(locked), fulfil);
  if (is_done) {
    logger_.Info("Fulfilled with {}", fmt::join(nodes, ","));
    slots_.clear();
    request_.reset();
    co_return;
  }
  logger_.Info("The request was deleted by its client; its nodes are free again");
  co_await ReleaseNodes();
  co_await request_->Unlock();
  request_.reset();
}

Task<> Handler::Decline(std::string reason) {
  logger_.Info("Declining: {}", reason);
  co_await ReleaseNodes();
  LauncherId self = host_.launcher_id();
  WallTime now = context_.loop.Now();
  HandlerHost* host = &host_;
  auto decline = [self, now, host](NodeRequest& request) {
    if (!request.WasDeclinedBy(self)) request.declined_by.push_back(self);
    request.SetState(host->AllDeclined(request) ? RequestState::kFailed : RequestState::kRequested, now);
    return Change::kWrite;
  };
  co_await request_->UpdateAndUnlock(decline);
  request_.reset();
}

Task<> Handler::GiveBack() {
  co_await ReleaseNodes();
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

// Healthy nodes become free, the others are found unlocked and deleted.
Task<> Handler::ReleaseNodes() {
  RequestId request = id();
  auto deallocate = [request](Node& node) {
    if (node.state != NodeState::kReady || node.allocated_to != request) return Change::kSkip;
    node.Free();
    return Change::kWrite;
  };
  for (const auto& slot : slots_) {
    if (!slot->node) continue;
    std::exception_ptr error;
    try {
      if (slot->state == Slot::State::kReady) co_await slot->node->Update(deallocate);
      co_await slot->node->Unlock();
    } catch (...) {
      error = std::current_exception();
    }
    if (error) logger_.Warning("Node {} could not be released: {}", slot->node->id(), MessageOf(error));
  }
  slots_.clear();
}

}  // namespace nodepool::launcher
