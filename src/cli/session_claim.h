#pragma once

#include <string>
#include <vector>

#include "async/event.h"
#include "cli/command.h"
#include "cli/launcher_query.h"
#include "cli/node_claim.h"
#include "store/cache/node_cache.h"
#include "store/cache/request_cache.h"

namespace nodepool::cli {

// The record of a new request of this command's user.
NodeRequest RequestFor(const NodeWish& wish, const Context& context);
// The text before the dash of the request's name.
std::string Precedence(const NodeWish& wish);

// A claim that lasts as long as our session (coordination.md 12.1).
class SessionClaim : public NodeClaim {
 public:
  SessionClaim(Context& context, NodeWish wish);

  // Locks all nodes or none, deletes the request and sets the nodes in-use.
  Task<> Obtain() override;
  // A node is given back when `nodepool release` asks for it.
  Task<> Keep(SteadyTime end) override;
  Task<> End() override;

  std::vector<ClaimedNode> nodes() const override;
  std::string Progress() const override;
  std::string WhyWaiting() const override;
  Task<> AskForProgress() override;

  const RequestId& request() const { return id_; }
  double SecondsSinceBegin() const;

 private:
  Task<store::StoredRequest> AwaitDecision();
  Task<> LockAll(std::vector<NodeId> ids);
  Task<> SetInUse();
  Task<> GiveBackWanted();
  Task<> GiveBack(store::LockedNode node);
  Task<> GiveBackAll();
  Task<> StopCaches();
  std::size_t CountBefore() const;
  std::size_t CountReady() const;

  Context& context_;
  const NodeWish wish_;
  const SteadyTime started_;
  RequestId id_;
  bool request_exists_ = false;
  std::vector<store::LockedNode> held_;
  Event changed_;  // the condition that a task waits for may have changed
  store::RequestCache requests_;
  store::NodeCache nodes_;
  std::string why_;  // the deciding reason, as the launchers said last
  Subscription request_watch_;
  Subscription node_watch_;
  Subscription session_watch_;
};

}  // namespace nodepool::cli
