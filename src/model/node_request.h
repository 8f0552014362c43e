#pragma once

#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "model/foreign.h"
#include "model/raw_json.h"
#include "model/states.h"

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

}  // namespace nodepool
