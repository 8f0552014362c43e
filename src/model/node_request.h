#pragma once

#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "model/node.h"
#include "model/raw_json.h"

namespace nodepool {

// Asks for a set of nodes (coordination.md 4.3). The id is the znode's name.
struct NodeRequest {
  std::optional<RequestState> state;
  WallTime state_time{};
  std::vector<LauncherId> declined_by;  // append only
  std::vector<LabelName> node_types;    // in order, repetitions allowed
  std::vector<NodeId> nodes;            // same order; filled only when fulfilled
  bool reuse = true;                    // false: launch new nodes
  std::optional<std::string> requestor;
  RawJson requestor_data;        // opaque, handed back unchanged
  ProviderName provider;         // the requested one; empty = null
  double relative_priority = 0;  // lower is served first; any number but NaN
  std::optional<std::string> event_id;
  std::optional<WallTime> created_time;
  std::optional<std::string> tenant_name;
  Foreign foreign;

  void SetState(RequestState next, WallTime now) {
    state = next;
    state_time = now;
  }
  bool WasDeclinedBy(const LauncherId& launcher) const;
};

Expected<NodeRequest> ParseNodeRequest(std::string_view json, WallTime now);
std::string ToJson(const NodeRequest& request);

// A request id is "<precedence>-<sequence>"; the sequence may be a negative number (launcher.md 8).
struct RequestIdParts {
  std::string precedence;  // compared as text
  std::string sequence;    // usually ten digits
};
std::optional<RequestIdParts> ParseRequestId(const RequestId& id);

// Requests of requestors that begin so belong to Nodepool itself; no client may claim to be one.
inline constexpr std::string_view kOwnRequestors = "NodePool:";
inline constexpr std::string_view kMinReadyRequestor = "NodePool:min-ready";
inline constexpr std::string_view kMinReadyPrecedence = "900";  // after all that others request

// Whether it asks for a launch that finds out whether those of a provider work again (breaker.md 3): only the
// provider's pools whose breaker is to be probed serve it, and its node is free then.
inline bool IsProbe(const NodeRequest& request) {
  return request.requestor == kMinReadyRequestor && !request.provider.empty();
}

// Why pools have declined a request, in words, one text for each decline: "fake-cloud main: it has no label
// smal". The key `decline_reasons` of its record (coordination.md 4.3), which only requests have that were
// declined, and which a Python launcher's next write removes.
std::vector<std::string> DeclineReasons(const NodeRequest& request);

// Why a failed request failed, in one text. A Python launcher writes no reasons.
std::string WhyFailed(const NodeRequest& request);

// Adds a reason, in one line and shortened; one that is there already, or that is empty, is not added. Of
// very many reasons the oldest are kept.
void AddDeclineReason(NodeRequest& request, const std::string& reason);

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
