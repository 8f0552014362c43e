#pragma once

#include <optional>
#include <string>
#include <vector>

#include "async/task.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/console.h"
#include "model/node.h"

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
// (session_claim.h), or with a lease over HTTP (lease_claim.h). End() must be called whatever happens.
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

}  // namespace nodepool::cli
