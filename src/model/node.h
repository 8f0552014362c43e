#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "model/raw_json.h"

namespace nodepool {

// Amounts by resource name, as written in a node's `resources`. The names are wire format; a
// driver may add others. In an amount an absent resource is 0, in a limit it is unlimited;
// a limit that is infinite is unlimited, too.
using Resources = std::map<std::string, double>;

namespace resource {

inline constexpr const char* kCores = "cores";
inline constexpr const char* kInstances = "instances";
inline constexpr const char* kRam = "ram";  // MiB
inline constexpr const char* kVolumes = "volumes";
inline constexpr const char* kVolumeGb = "volume-gb";

}  // namespace resource

// Arithmetic on resources (launcher.md 19.1). Amounts are rounded to whole millionths, so that
// adding and subtracting again leaves nothing: three times 0.1 fits exactly into 0.3.

// With a negative `more` the difference. Unlimited minus unlimited is unlimited.
double ExactSum(double amount, double more);

void Add(Resources& amount, const Resources& more, int times = 1);
void Subtract(Resources& amount, const Resources& less);

// The missing amounts by resource, all positive, when `need` is added to `used` under `limit`;
// empty when it fits.
Resources Shortage(const Resources& limit, const Resources& used, const Resources& need);

inline bool Fits(const Resources& limit, const Resources& used, const Resources& need) {
  return Shortage(limit, used, need).empty();
}

// A sum whose amounts are added and later subtracted: subtracting what was added restores it
// exactly, however large the amounts are.
class ResourceSum {
 public:
  void Add(const Resources& amount);
  void Subtract(const Resources& amount);
  // Without the resources whose sum is zero.
  const Resources& total() const { return total_; }

 private:
  void Change(const std::string& name, std::uint64_t millionths);

  // Modulo 2^64, so that absurd records can neither overflow nor leave a residue.
  std::map<std::string, std::uint64_t> millionths_;
  Resources total_;
};

// States of records, with the words of the wire (coordination.md 5). Each comment
// says who sets the state and what follows.

enum class NodeState {
  kInit,      // launcher, at creation; becomes building once it is locked
  kBuilding,  // launcher, under its lock; unlocked it is garbage
  kTesting,   // set by no program any more; read from old records
  kReady,     // launcher; free, or allocated to a fulfilled request
  kInUse,     // the client, under its lock; unlocked it is garbage
  kUsed,      // the client, before unlocking; deleted next
  kHold,      // client or operator; held until its limit or an operator ends it
  kDeleting,  // any process or operator; only the deleted-node worker deletes
  kDeleted,   // the deleted-node worker, right before the record is removed
  kFailed,    // launcher: the launch failed for good (D-11); deleted next
  kAborted,   // launcher: the cloud refused for quota; deleted next
};

enum class RequestState {
  kRequested,  // client; also a launcher that returns it
  kPending,    // launcher holding the request's lock
  kFulfilled,  // launcher; nodes are ready, unlocked and listed
  kFailed,     // launcher: every registered pool declined
};

enum class ImageState { kBuilding, kUploading, kReady, kDeleting, kFailed };

std::string_view ToString(NodeState state);
std::string_view ToString(RequestState state);
std::string_view ToString(ImageState state);
std::optional<NodeState> ParseNodeState(std::string_view text);
std::optional<RequestState> ParseRequestState(std::string_view text);
std::optional<ImageState> ParseImageState(std::string_view text);

// Every word that names a state of the kind.
std::vector<std::string_view> NodeStateWords();
std::vector<std::string_view> RequestStateWords();
std::vector<std::string_view> ImageStateWords();

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
