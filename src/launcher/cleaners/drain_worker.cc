#include "launcher/cleaners/drain_worker.h"

#include "async/attempt.h"
#include "async/deadline.h"
#include "launcher/cleaners/mark_deleting.h"

namespace nodepool::launcher {

DrainWorker::DrainWorker(Context& context, const ProviderManager& providers)
    : context_(context),
      providers_(providers),
      logger_("nodepool.CleanupWorker"),
      tasks_(context.loop, logger_) {}

DrainWorker::~DrainWorker() = default;

void DrainWorker::Start() {
  subscriptions_.push_back(
      context_.caches.nodes.OnChange([this](const NodeId& id, const store::StoredNode*,
                                            const store::StoredNode* after) { NodeChanged(id, after); }));
  subscriptions_.push_back(
      context_.caches.pauses.OnChange([this](const ProviderName& provider, const ProviderPause*,
                                             const ProviderPause*) { AddNodesOf(provider); }));
  tasks_.Spawn("drain providers", Run());
}

Task<> DrainWorker::Stop() {
  subscriptions_.clear();
  co_await tasks_.Stop();
}

bool DrainWorker::IsDrained(const ProviderName& provider) const {
  const ProviderPause* pause = context_.caches.pauses.Find(provider);
  if (pause == nullptr || !pause->is_drained) return false;
  std::shared_ptr<driver::Provider> running = providers_.Find(provider);
  return running && running->launches_nodes();
}

void DrainWorker::NodeChanged(const NodeId& id, const store::StoredNode* node) {
  bool is_due =
      node != nullptr && node->record.is_free() && !node->is_locked() && IsDrained(node->record.provider);
  if (!is_due) return;
  due_.insert(id);
  changed_.Set();
}

void DrainWorker::AddNodesOf(const ProviderName& provider) {
  if (!IsDrained(provider)) return;
  for (const NodeId& id : context_.caches.nodes.OfProvider(provider))
    NodeChanged(id, context_.caches.nodes.Find(id));
}

// For what no event announces: the provider has started, or a deletion has failed.
void DrainWorker::Sweep() {
  for (const auto& [provider, pause] : context_.caches.pauses.all()) AddNodesOf(provider);
}

Task<> DrainWorker::Run() {
  while (true) {
    if (context_.caches.synced()) Sweep();
    SteadyTime next_sweep = context_.loop.SteadyNow() + context_.intervals.cleanup;
    while (context_.loop.SteadyNow() < next_sweep) {
      changed_.Reset();
      while (!due_.empty()) {
        NodeId id = due_.extract(due_.begin()).value();
        Outcome<> deleted = co_await Attempt(Delete(id));
        if (!deleted)
          logger_.About(log::OfNode(id))
              .Warning("The unused node could not be marked, trying again: {}", deleted.error().message());
      }
      co_await EndsBy(context_.loop, next_sweep, "nodes to drain", changed_.Wait());
    }
  }
}

Task<> DrainWorker::Delete(NodeId id) {
  const store::StoredNode* node = context_.caches.nodes.Find(id);
  if (node == nullptr || !IsDrained(node->record.provider)) co_return;
  auto applies = [this](const Node& record) { return record.is_free() && IsDrained(record.provider); };
  co_await MarkDeleting(context_, providers_, logger_, id, "drained", "its provider is drained", applies);
}

}  // namespace nodepool::launcher
