#pragma once

#include <optional>
#include <string>
#include <vector>

#include "async/event.h"
#include "cli/command.h"
#include "store/cache/node_cache.h"
#include "store/cache/request_cache.h"

namespace nodepool::cli {

// The nodes that a command wants.
struct NodeWish {
  std::vector<LabelName> labels;  // at least one; in the order of the nodes
  int priority = 200;             // 0 to 999; smaller is served first
  std::optional<std::string> tenant;
  std::string requestor = "nodepool";
  ProviderName provider;  // preferred; empty: none
};

// The record of a new request of this command's user.
NodeRequest RequestFor(const NodeWish& wish, const Context& context);
// The text before the dash of the request's name.
std::string Precedence(const NodeWish& wish);

// The client of one request, which lasts as long as our session, from its creation to the return of its nodes
// (coordination.md 12.1). End() must be called whatever happens.
class NodeClaim {
 public:
  NodeClaim(Context& context, NodeWish wish);

  // Makes the request and waits for its end; then locks all nodes or none, deletes the request and sets the
  // nodes in-use. Error(kFail): the request failed, with the reasons; kNotFound: it was removed; kConflict:
  // the nodes are not ours.
  Task<> Obtain();
  // Ends when no node is left: each is given back when `nodepool release` asks for it, and dropped when it is
  // removed. Ends at `end`, too. Error(kLostSession): the nodes are not ours any more.
  Task<> Keep(SteadyTime end);
  // Gives everything back. Waits up to ten seconds for ZooKeeper; after that the end of the session does it.
  Task<> End();

  const RequestId& request() const { return id_; }
  const std::vector<store::LockedNode>& nodes() const { return held_; }  // in the order of the labels
  double SecondsSinceBegin() const;

  // What is known of the tree, for messages. Not complete before Obtain() has begun.
  const store::RequestCache& requests() const { return requests_; }
  const store::NodeCache& tree_nodes() const { return nodes_; }

 private:
  Task<store::StoredRequest> AwaitDecision();
  Task<> LockAll(std::vector<NodeId> ids);
  Task<> SetInUse();
  Task<> GiveBackWanted();
  Task<> GiveBack(store::LockedNode node);
  Task<> GiveBackAll();
  Task<> StopCaches();

  Context& context_;
  const NodeWish wish_;
  const SteadyTime started_;
  RequestId id_;
  bool request_exists_ = false;
  std::vector<store::LockedNode> held_;
  Event changed_;  // the condition that a task waits for may have changed
  store::RequestCache requests_;
  store::NodeCache nodes_;
  Subscription request_watch_;
  Subscription node_watch_;
  Subscription session_watch_;
};

}  // namespace nodepool::cli
