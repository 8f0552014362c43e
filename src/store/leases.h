#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/records.h"
#include "store/tree.h"

namespace nodepool::store {

// A node and who contends for its lock, as just read, for a transaction about it.
struct LockedView {
  struct Contender {
    std::string path;
    std::string identifier;
  };

  NodeId id;
  std::optional<StoredNode> node;     // nullopt: gone, or unreadable
  bool has_directory = false;         // of the lock
  std::vector<Contender> contenders;  // the first has the lock

  bool is_locked_by(const std::string& owner) const {
    return !contenders.empty() && contenders.front().identifier == owner;
  }
};

// Reads the nodes, in this order, with two messages for all of them.
Task<std::vector<LockedView>> ReadLockedViews(Tree& tree, std::vector<NodeId> ids);

// Appends what locks the node for `owner` with a persistent contender and writes `next`. Requires that it
// exists and has no contender.
void AppendTake(std::vector<zk::Op>& ops, const LockedView& view, const std::string& owner, const Node& next,
                Random& random);

// Appends what removes the owner's contender, and, where it had the lock, applies `change` to the record.
// Nothing where the owner has no contender.
void AppendRelease(std::vector<zk::Op>& ops, const LockedView& view, const std::string& owner,
                   const std::function<Change(Node&)>& change);

// Leases in the tree, and the transactions that move them on with their requests and nodes
// (http-requests.md 1). Each of these reads everything anew and checks the versions of all that it rests on,
// so it may be called by several processes, and again after a lost answer. Error(kConflict): other processes
// kept changing the records.
class Leases {
 public:
  explicit Leases(Tree& tree) : tree_(tree) {}

  // Creates the lease, waiting, and its request (RequestFor) in one transaction, then notes the request's id
  // in the lease. `precedence` is as in Requests::Create. False: the lease exists.
  Task<bool> Create(LeaseId id, Lease lease, NodeRequest request, std::string precedence);
  // nullopt: does not exist. Error(kInvalid): cannot be parsed.
  Task<std::optional<StoredLease>> Read(LeaseId id);
  // Applies `change` to the newest version and writes it. False: it is gone, or `change` skipped.
  Task<bool> Update(LeaseId id, std::function<Change(Lease&)> change);

  // The result of Take.
  struct Taking {
    bool is_taken = false;
    std::string obstacle;   // why it cannot be taken; empty: there is nothing to take
    bool may_pass = false;  // the obstacle is another contender, which may go away
  };
  // Gives the nodes of the fulfilled request to the waiting lease, and deletes the request.
  Task<Taking> Take(LeaseId id);
  // Makes the waiting lease `failed` if its request has failed or is gone. False: it has not.
  Task<bool> FailUnserved(LeaseId id);
  // Makes the lease `failed` in any case: what it has is given back, its request deleted. False: it is gone,
  // failed or ends.
  Task<bool> Fail(LeaseId id, std::string why);
  // Gives everything back and deletes the lease. With a version: only if it is still the lease's.
  // False: it is gone, or was written since.
  Task<bool> End(LeaseId id, std::optional<std::int32_t> version = std::nullopt);
  // Drops the nodes that are gone, not in use any more, or locked by another; returns them.
  Task<std::vector<NodeId>> DropLostNodes(LeaseId id);
  // Makes the node `hold` and drops it; one that is held with this comment already counts as done.
  // False: the lease is gone, or does not have the node.
  Task<bool> HoldNode(LeaseId id, NodeId node, std::string comment, std::optional<std::int64_t> seconds);
  // Frees the node if it is locked for a lease that is gone or does not have it. False: it is not.
  Task<bool> FreeOrphan(NodeId node, LeaseId id);

  // Deletes a request whose lease is gone. False: it is not.
  Task<bool> DeleteOrphan(RequestId request, LeaseId id);

  // The election of the keeper; `identifier` is "<hostname>-<pid>".
  zk::Election Election(std::string identifier);

 private:
  // A transaction about a lease: what is written besides its changed record.
  struct Write {
    std::vector<zk::Op> ops;
    bool deletes_lease = false;
  };
  // Changes `lease` and returns what else to write; nullopt: nothing is to be done.
  using Plan = std::function<Task<std::optional<Write>>(StoredLease& lease)>;

  Task<bool> Commit(LeaseId id, Plan plan);
  Task<bool> CommitOnce(LeaseId id, const Plan& plan);
  Task<std::optional<RequestId>> CreateOnce(LeaseId id, std::string data, NodeRequest request,
                                            std::string precedence, bool may_exist);
  Task<std::optional<Write>> PlanUpdate(StoredLease& lease, std::function<Change(Lease&)> change);
  Task<std::optional<Write>> PlanTake(StoredLease& lease, Taking& taking);
  Task<std::optional<Write>> PlanFailUnserved(StoredLease& lease);
  Task<std::optional<Write>> PlanFail(StoredLease& lease, std::string why);
  Task<std::optional<Write>> PlanEnd(StoredLease& lease, std::optional<std::int32_t> version);
  Task<std::optional<Write>> PlanDrop(StoredLease& lease, std::vector<NodeId>& dropped);
  Task<std::optional<Write>> PlanHold(StoredLease& lease, NodeId node, std::function<Change(Node&)> change);
  Task<Write> GiveBack(StoredLease& lease);
  Task<bool> TryFreeOrphan(NodeId node, LeaseId id);
  Task<bool> HasNode(LeaseId id, NodeId node);
  std::function<Change(Node&)> ToUsed() const;

  Tree& tree_;
};

}  // namespace nodepool::store
