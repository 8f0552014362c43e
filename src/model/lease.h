#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "model/foreign.h"
#include "model/node.h"
#include "model/node_request.h"

namespace nodepool {

enum class LeaseState {
  kWaiting,  // web server, at creation; its request is not served yet
  kHeld,     // keeper; the nodes are in use for the client
  kFailed,   // keeper; `failure` says why
  kEnding,   // web server; the keeper gives the nodes back and deletes the record
};

std::string_view ToString(LeaseState state);
std::optional<LeaseState> ParseLeaseState(std::string_view text);
std::vector<std::string_view> LeaseStateWords();

// A client's right to the nodes of one request (http-requests.md 1). The id is the znode's name.
struct Lease {
  std::optional<LeaseState> state;  // absent only in a default object
  std::string client;               // the token's name
  std::vector<LabelName> labels;    // one for each node
  std::optional<std::string> requestor;
  std::optional<std::string> tenant_name;
  RequestId request;          // empty: not noted yet, or deleted
  std::vector<NodeId> nodes;  // in the order of the labels
  std::int64_t lease_seconds = 300;
  std::optional<WallTime> created_time;
  std::optional<WallTime> renewed_time;
  std::optional<std::string> failure;  // for people
  std::string asked;                   // SHA-256 of what was asked, in hex
  Foreign foreign;

  // How long it lasts without a renewal. A failed one cannot be renewed, and is there only to say why.
  Duration duration() const;
  bool has_node(const NodeId& node) const;
  // How many nodes it has, or waits for.
  std::size_t node_count() const;
};

// The error says what is wrong with which key; also when there is no state or no client, or when the duration
// is not positive.
Expected<Lease> ParseLease(std::string_view json);
std::string ToJson(const Lease& lease);

// Whether the text is 32 lower-case hex digits.
bool IsLeaseId(std::string_view text);

// The data of the contender that locks a node for a lease: "lease:<id>".
std::string OwnerText(const LeaseId& id);

// Nodes in use for a lease, and requests made for it, name it in the data that belongs to their client:
// {"lease": <id>, "client": <name>} in `user_data` and `requestor_data`.
void PutInUse(Node& node, const LeaseId& id, const Lease& lease, WallTime now);
NodeRequest RequestFor(const LeaseId& id, const Lease& lease, WallTime now);
// Marks a node that the lease's client holds: it counts as one of the client's for as long as it is in state
// `hold`.
void MarkHeld(Node& node);
// The client of such a node; nullopt: there is none.
std::optional<std::string> HolderOf(const Node& node);
// The lease that is named; nullopt: none.
std::optional<LeaseId> LeaseOf(const Node& node);
std::optional<LeaseId> LeaseOf(const NodeRequest& request);

}  // namespace nodepool
