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
#include "model/resources.h"
#include "model/shared.h"
#include "model/states.h"

namespace nodepool {

// A machine (coordination.md 4.4). The id is not part of the record: it is the
// znode's name. Fields that the wire may hold as null are optional.
struct Node {
  std::optional<NodeState> state;  // absent only in records that never had one
  WallTime state_time{};
  SharedText cloud;
  ProviderName provider;  // empty = null: such a record is garbage
  PoolName pool;
  std::vector<LabelName> type;  // the node's labels; usually one
  RequestId allocated_to;       // empty = null = free
  SharedText az;
  SharedText region;
  std::optional<std::string> public_ipv4;
  std::optional<std::string> private_ipv4;
  std::optional<std::string> public_ipv6;
  std::optional<std::string> host_id;
  std::optional<std::string> interface_ip;
  // A number, or an object with access data that must never be logged. Written
  // twice on the wire: `connection_port` and the older `ssh_port`.
  RawJson connection_port = 22;
  SharedText image_id;
  SharedText launcher;
  std::optional<WallTime> created_time;
  boost::json::value external_id;  // text or object, private to the driver
  std::optional<std::string> hostname;
  SharedText comment;
  RawJson user_data;
  SharedText hold_job;
  std::vector<std::string> host_keys;
  SharedText username = "zuul";
  SharedText connection_type;
  SharedText shell_type;
  std::optional<std::int64_t> hold_expiration;  // seconds; ≤ 0 means no own limit
  Shared<Resources> resources;
  std::optional<std::int64_t> slot;
  RawJson attributes;  // null or an object
  SharedText python_path;
  SharedText tenant_name;
  RawJson driver_data;
  SharedText requestor;
  std::optional<double>
      hourly_price;  // of the machine; omitted on the wire when unset (not in Python's records)
  Foreign foreign;

  // Every assignment of a state sets its time, also to the same state.
  void SetState(NodeState next, WallTime now) {
    state = next;
    state_time = now;
  }
  // Frees the node from its request. Unknown keys are removed, too: their client would take the
  // node for its own when another client has it (D-04).
  void Free() {
    allocated_to = RequestId();
    foreign.unknown.clear();
  }
  bool is_free() const { return state == NodeState::kReady && allocated_to.empty(); }
  bool has_label(const LabelName& label) const;
};

// `now` fills in a missing state_time. The error says what is wrong with which key.
Expected<Node> ParseNode(std::string_view json, WallTime now);
std::string ToJson(const Node& node);

}  // namespace nodepool
