#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/reconciler.h"
#include "async/task_group.h"
#include "base/subscription.h"
#include "launcher/context.h"
#include "launcher/provider_manager.h"

namespace nodepool::launcher {

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

// Whether an unlocked node in this state is garbage (launcher.md 18).
bool IsGarbageWhenUnlocked(NodeState state);

}  // namespace nodepool::launcher
