#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace nodepool::zk {

// Answers of a ZooKeeper server, with the protocol's numbers.
enum class Code : std::int32_t {
  kOk = 0,
  kSystemError = -1,
  kRuntimeInconsistency = -2,
  kDataInconsistency = -3,
  kConnectionLoss = -4,
  kMarshallingError = -5,
  kUnimplemented = -6,
  kOperationTimeout = -7,
  kBadArguments = -8,
  kApiError = -100,
  kNoNode = -101,
  kNoAuth = -102,
  kBadVersion = -103,
  kNoChildrenForEphemerals = -108,
  kNodeExists = -110,
  kNotEmpty = -111,
  kSessionExpired = -112,
  kInvalidCallback = -113,
  kInvalidAcl = -114,
  kAuthFailed = -115,
  kSessionMoved = -118,
  kNotReadOnly = -119,
  kNoWatcher = -121,
  kQuotaExceeded = -125,
};

std::string_view ToString(Code code);

// An operation's ordinary outcome: the value, or one of kNoNode, kNodeExists,
// kBadVersion, kNotEmpty, kNoChildrenForEphemerals, kNoWatcher. Every other fault
// is thrown as Error (see Client).
template <class T = void>
using Result = std::expected<T, Code>;

struct Stat {
  std::int64_t czxid = 0;            // transaction that created the znode
  std::int64_t mzxid = 0;            // transaction that last changed its data
  std::int64_t ctime = 0;            // milliseconds since the epoch
  std::int64_t mtime = 0;            // milliseconds since the epoch
  std::int32_t version = 0;          // changes of the data
  std::int32_t cversion = 0;         // changes of the children
  std::int32_t aversion = 0;         // changes of the ACL
  std::int64_t ephemeral_owner = 0;  // session id, 0 for a persistent znode
  std::int32_t data_length = 0;
  std::int32_t num_children = 0;
  std::int64_t pzxid = 0;  // transaction that last changed the children
  bool operator==(const Stat&) const = default;
};

// The numbers are the protocol's create flags.
enum class CreateMode : std::int32_t {
  kPersistent = 0,
  kEphemeral = 1,
  kPersistentSequential = 2,
  kEphemeralSequential = 3,
  kContainer = 4,
  kPersistentTtl = 5,
  kPersistentSequentialTtl = 6,
};

struct Created {
  std::string path;  // with the sequence number, for sequential modes
  Stat stat;
};

struct NodeData {
  std::string data;
  Stat stat;
};

struct Children {
  std::vector<std::string> names;  // in the server's order, which means nothing
  Stat stat;                       // of the parent
};

// An entry of a znode's access list. Nodepool's own znodes are open to everybody (coordination.md 3.3).
struct AclEntry {
  std::int32_t permissions = 0;
  std::string scheme;
  std::string id;
  bool operator==(const AclEntry&) const = default;
};
using Acl = std::vector<AclEntry>;

// Parts of a transaction (Client::Multi).
struct CreateOp {
  std::string path;
  std::string data;
  CreateMode mode = CreateMode::kPersistent;
  std::shared_ptr<const Acl> acl = nullptr;  // null: open to everybody, all that our clients use
};
struct SetOp {
  std::string path;
  std::string data;
  std::int32_t version = -1;  // -1: any
};
struct DeleteOp {
  std::string path;
  std::int32_t version = -1;
};
struct CheckOp {
  std::string path;
  std::int32_t version = -1;  // -1 checks existence only
};
using Op = std::variant<CreateOp, SetOp, DeleteOp, CheckOp>;

struct OpResult {
  Code code = Code::kOk;
  std::string path;  // CreateOp: the created path
  Stat stat;         // CreateOp (without the times, before ZooKeeper 3.9), SetOp
};

// A transaction is applied as a whole or not at all. `results` has an entry per Op. When it was
// refused, `failed` is the index of the Op at fault, results[failed] says why, and earlier entries
// are kOk, later ones kRuntimeInconsistency.
struct MultiResult {
  std::vector<OpResult> results;
  int failed = -1;
  bool ok() const { return failed < 0; }
  Code code() const { return failed < 0 ? Code::kOk : results[static_cast<std::size_t>(failed)].code; }
};

// Parts of a message that reads much at once (Client::ReadMany).
struct ReadOp {
  enum class Kind { kData, kChildren };
  Kind kind = Kind::kData;
  std::string path;
};
struct ReadResult {
  Code code = Code::kOk;           // else kNoNode
  NodeData node;                   // of kData
  std::vector<std::string> names;  // of kChildren, as in Children
};

enum class EventType : std::int32_t {
  kNone = -1,  // about the session, not about a path
  kCreated = 1,
  kDeleted = 2,
  kDataChanged = 3,
  kChildren = 4,
};

struct WatchEvent {
  EventType type = EventType::kNone;
  std::string path;        // without the chroot
  std::int64_t zxid = -1;  // of the change, where the server reports it (from 3.9 on); else -1
};

// Called on the loop's thread; must not block and must not throw.
using Watcher = std::function<void(const WatchEvent&)>;

enum class WatchMode : std::int32_t {
  kPersistent = 0,
  kPersistentRecursive = 1,
};

// The life of a session as its user sees it.
//
//   kConnecting --> kConnected <--> kSuspended
//        ^               |              |
//        |               v              v
//        +----------- kLost <-----------+        any --> kClosed (final)
//
// kConnecting: no session yet. kSuspended: the connection is lost, the session may still
// live. kLost: the session expired; everything ephemeral, every lock and every
// watch that was not re-armed is lost; the client then starts a new session by
// itself (kConnecting). kClosed: Close() was called, or the client gave up for
// good (refused credentials).
enum class SessionState { kConnecting, kConnected, kSuspended, kLost, kClosed };

std::string_view ToString(SessionState state);

// A session. Locks are bound to it: a different value means that they are lost.
struct Session {
  std::int64_t id = 0;           // as the server names it (ephemeral_owner)
  std::uint64_t generation = 0;  // counts the sessions of this client, from 1; 0 = none yet
  bool operator==(const Session&) const = default;
};

// How many children the znode ever had, which is the sequence number of the next one. A stat counts
// creations and deletions of children together; a count of more than 31 bits is negative there.
inline std::int64_t ChildrenEverCreated(const Stat& stat) {
  auto changes = static_cast<std::int64_t>(static_cast<std::uint32_t>(stat.cversion));
  return (changes + stat.num_children) / 2;
}

// Whether a server accepts `path` as the name of a znode: absolute, no trailing
// slash, no empty or relative component, valid UTF-8 without control characters
// and without what ZooKeeper excludes besides (private use, U+FFF0 and above).
bool IsValidPath(std::string_view path);

// Whether a server would take `path` (absolute, no empty, "." or ".." component, no
// control characters, UTF-8). Throws Error(kInvalid) naming the path and the fault.
// Only a sequential create may end in a slash.
void CheckPath(std::string_view path, bool may_end_in_slash = false);

// The same for every part of a transaction.
void CheckPaths(const std::vector<Op>& ops);

// `chroot` as it is put in front of paths: "" for none or "/". Throws Error(kInvalid).
std::string NormalizedChroot(std::string_view chroot);

// A path from the server without the chroot; nullopt when it is outside.
std::optional<std::string_view> WithoutChroot(std::string_view path, std::string_view chroot);

// What an entry of an access list may permit; the protocol's bits.
namespace permission {
constexpr std::int32_t kRead = 1;
constexpr std::int32_t kWrite = 2;
constexpr std::int32_t kCreate = 4;
constexpr std::int32_t kDelete = 8;
constexpr std::int32_t kAdmin = 16;
constexpr std::int32_t kAll = 31;
}  // namespace permission

// An identity that a connection has authenticated: (scheme, id), e.g. ("digest", "user:base64 of a
// SHA-1").
struct Identity {
  std::vector<std::pair<std::string, std::string>> names;
};

// Roughly the memory that it takes.
std::size_t BytesOf(const Acl& acl);

// Whether `acl` (null: open to everybody) grants one of the `wanted` permissions.
bool Permits(const Acl* acl, std::int32_t wanted, const Identity& who);

// The list that a znode gets for what a client `asked`: "auth" becomes the client's
// own names; null when the list is open to everybody. kInvalidAcl for an empty list,
// for schemes other than world, auth and digest, and for malformed ids.
Result<std::shared_ptr<const Acl>> ResolveAcl(const Acl& asked, const Identity& who);

// The id of "user:password" in the scheme digest.
std::string DigestId(std::string_view credentials);

}  // namespace nodepool::zk
