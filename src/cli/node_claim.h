#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/task.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/launcher_query.h"
#include "model/node.h"
#include "model/node_request.h"
#include "store/cache/cached_records.h"

namespace nodepool::cli {

// The nodes that a command wants.
struct NodeWish {
  std::vector<LabelName> labels;  // at least one; in the order of the nodes
  std::optional<int> priority;    // 0 to 999; smaller is served first. None: the usual one
  std::optional<std::string> tenant;
  std::optional<std::string> requestor;  // who asks, for statistics; none: the usual one
  ProviderName provider;                 // preferred; empty: none
};

// A node that is ours.
struct ClaimedNode {
  NodeId id;
  Node record;  // as of the moment when it became ours
};

// How long a claim waits for the server when it ends.
inline constexpr Duration kGiveBackTimeout = std::chrono::seconds(10);

// The client of one request, from its creation to the return of its nodes: with a session of ZooKeeper
//, or with a lease over HTTP (lease_claim.h). End() must be called whatever happens.
class NodeClaim {
 public:
  virtual ~NodeClaim() = default;

  // Makes the request and waits until all nodes are ours. Error(kFail): the request failed, with the reasons;
  // kNotFound: it was removed; kConflict: the nodes are not ours.
  virtual Task<> Obtain() = 0;
  // Keeps the nodes, and ends when none is left: each is dropped when it is taken away. Ends at `end`, too.
  // Error(kLostSession): the nodes are not ours any more.
  virtual Task<> Keep(SteadyTime end) = 0;
  // Gives everything back. Waits for kGiveBackTimeout; after that the end of the session or of the lease does
  // it.
  virtual Task<> End() = 0;

  // In the order of the labels.
  virtual std::vector<ClaimedNode> nodes() const = 0;

  // Why there are no nodes yet, in a line without its end: how many requests are before it and what the
  // launchers say, or how many of its nodes are ready.
  virtual std::string Progress() const = 0;
  // The reason that decides why it waits, in one sentence; empty: none is known, or it does not wait.
  virtual std::string WhyWaiting() const = 0;
  // Asks for what these say and this process does not know by itself. Does not fail.
  virtual Task<> AskForProgress() = 0;
};

// Texts of Progress().
std::string BootingText(std::size_t ready, std::size_t wanted);
std::string WaitingText(std::string begin, std::string waits);

// sched::FaultOfLabels() of what is registered now, and the same of the provider.
Task<std::string> FaultOfWish(Context& context, NodeWish wish);

// Obtains the claim's nodes and shows meanwhile why there are none: on a terminal a line that is kept current
// and removed at the end, else a log line when the deciding reason changes, once a minute at most.
Task<> ObtainShowingWhy(Console& console, NodeClaim& claim);

// How `nodepool request` and `nodepool release` recognize their own requests and nodes. Both marks are in
// fields that belong to the client and that Nodepool does not interpret: a request's `requestor_data`,
// {"tool": "nodepool request", "user": "alice@host"}, and a node's `user_data`, {"nodepool_request":
// "<request id>", "user": "alice@host", "release": <bool>}. Marks of old versions name no user.

void MarkRequest(NodeRequest& request, const std::string& user);
bool IsMarked(const NodeRequest& request);
bool IsMarkedBy(const NodeRequest& request, const std::string& user);

void MarkNode(Node& node, const RequestId& request, const std::string& user);
bool IsMarked(const Node& node);
bool IsMarkedBy(const Node& node, const std::string& user);
// The request that a marked node is for.
RequestId RequestIn(const Node& node);

// How `release` asks the holder, another process, to give the node back. Written without the node's lock,
// which the holder has; only our own mark is changed. Requires a marked node.
void AskForRelease(Node& node);
bool IsReleaseRequested(const Node& node);

// What one `nodepool request` of a user has, by its marks.
struct OwnRequest {
  RequestId id;
  bool is_there = false;  // its record; a command that waits removes it once it has the nodes
  std::string state;      // of the request, else of its nodes
  std::set<LabelName> labels;
  std::set<NodeId> nodes;
  WallTime since{};
};

// All of `context.user`, those with records first, by id. `nodes` is complete.
Task<std::vector<OwnRequest>> OwnRequests(Context& context, const store::NodeCache& nodes);

listing::Listing ListOwnRequests(const std::vector<OwnRequest>& requests);

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
