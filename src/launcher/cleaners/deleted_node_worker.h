#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/reconciler.h"
#include "async/task_group.h"
#include "base/subscription.h"
#include "launcher/context.h"
#include "launcher/provider_manager.h"
#include "store/locked_records.h"

namespace nodepool::launcher {

// Locks a node for a short while. None: another process has it locked, or a part of this launcher has claimed
// it.
//
// The node counts as claimed until the lock is there or refused: otherwise a request of this launcher could
// take the node meanwhile, and hand it out with this attempt still queued at its lock. The context outlives
// the call.
Task<std::optional<store::LockedNode>> LockUnclaimed(Context& context, NodeId id);

// Locks the unlocked node of a provider of this launcher and marks it `deleting` if `applies` is still true
// of its record; counts it as `kind` and logs why. Does nothing while another process, or a request of this
// one, has the node. All arguments outlive it.
Task<> MarkDeleting(Context& context, const ProviderManager& providers, const log::Logger& logger, NodeId id,
                    std::string kind, std::string why, std::function<bool(const Node&)> applies);

// The only place that deletes machines (launcher.md 21). Reacts to every change of a node: dead, unlocked
// nodes of configured providers are deleted; ready ones whose request is gone, or does not have them, become
// free. A deletion that fails is repeated with growing pauses, without limit. A sweep once a minute finds
// what a lost session interrupted.
class DeletedNodeWorker {
 public:
  DeletedNodeWorker(Context& context, ProviderManager& providers);
  ~DeletedNodeWorker();  // call Stop() first

  // Examines all nodes, then follows changes.
  void Start();
  // Begins no more deletions.
  void StopAccepting() { is_ending_ = true; }
  // Ends when the deletions under way have ended.
  Task<> Finish();
  // Abandons the deletions under way; the next launcher takes them up.
  Task<> Stop();
  void SessionLost() { works_.CancelAll(); }
  // Call when the provider came up: its dead nodes can be deleted now.
  void ProviderStarted(const ProviderName& provider);
  // Ends when nothing of the provider is left to delete or being deleted.
  Task<> AwaitClean(ProviderName provider);

 private:
  using Works = Reconciler<NodeId>;

  void Examine(const NodeId& id);
  std::optional<Works::Work> WorkFor(const NodeId& id);
  void FreeNode(const NodeId& id);
  // Runs `task`, and says afterwards that the node may be done.
  Task<> ThenNotify(Task<> task);
  Task<bool> IsBeingLaunched(NodeId id);
  Task<> Delete(NodeId id);
  Task<std::optional<Node>> DeleteLocked(std::optional<store::LockedNode>& node,
                                         std::optional<HoldNote> note);
  Task<> DeleteMachine(store::LockedNode& node, driver::Provider& provider);
  Task<> ShowDeletion(store::LockedNode& node, Duration after);
  Task<> HoldIfNoted(store::LockedNode& node, std::optional<HoldNote> note);
  Task<> Deallocate(NodeId id);
  Task<> FreeIfLeft(store::LockedNode& node, RequestId request);
  Task<> Sweep();
  Task<> ExamineAll();
  bool IsLeft(const store::StoredNode& node) const;
  bool IsClean(const ProviderName& provider) const;

  Context& context_;
  ProviderManager& providers_;
  log::Logger logger_;
  std::set<NodeId> removed_;  // by us, though the cache still shows them
  WaitList progress_;         // notified when a node changed or is done
  Works works_;               // cancelled when the session is lost
  TaskGroup loops_;
  bool is_ending_ = false;
  std::vector<Subscription> subscriptions_;
};

// Deletes the unused nodes of providers that an operator drains (http-actions.md 1.3), also those that become
// ready later. Nodes of providers that only hand out existing machines stay: they would be registered again.
class DrainWorker {
 public:
  DrainWorker(Context& context, const ProviderManager& providers);
  ~DrainWorker();  // call Stop() first

  void Start();
  Task<> Stop();

 private:
  Task<> Run();
  Task<> Delete(NodeId id);
  void Sweep();
  void AddNodesOf(const ProviderName& provider);
  bool IsDrained(const ProviderName& provider) const;
  void NodeChanged(const NodeId& id, const store::StoredNode* node);

  Context& context_;
  const ProviderManager& providers_;
  log::Logger logger_;
  std::set<NodeId> due_;
  Event changed_{"nodes of a drained provider"};
  std::vector<Subscription> subscriptions_;
  TaskGroup tasks_;
};

}  // namespace nodepool::launcher
