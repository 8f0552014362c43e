#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "zk/znode.h"

namespace nodepool::zk {

// Jute, ZooKeeper's record encoding: numbers are big-endian, strings and buffers
// carry a 32-bit length, a length of -1 means "none". Appends to a string that
// outlives the writer.
class JuteWriter {
 public:
  explicit JuteWriter(std::string& out) : out_(out) {}

  void Bool(bool value) { out_.push_back(value ? '\1' : '\0'); }
  void Int(std::int32_t value);
  void Long(std::int64_t value);
  void Bytes(std::string_view value);
  // The same on the wire as Bytes; must be UTF-8.
  void String(std::string_view value) { Bytes(value); }
  // A string made of two parts, as chroot and path are.
  void String(std::string_view head, std::string_view tail);

  // Bytes that are encoded already.
  void Raw(std::string_view bytes) { out_.append(bytes); }

  std::size_t size() const { return out_.size(); }
  // So many bytes will follow, about.
  void Expect(std::size_t bytes) { out_.reserve(out_.size() + bytes); }
  // Overwrites the Int that starts at `position`.
  void PatchInt(std::size_t position, std::int32_t value);

 private:
  std::string& out_;
};

// Reads bytes that a server sent and that are not trusted: every read is bounded by the given
// bytes, and the only failure is Error(kFail), which says what was expected. The views it returns
// live as long as the bytes.
class JuteReader {
 public:
  explicit JuteReader(std::string_view bytes) : rest_(bytes) {}

  bool Bool();
  std::int32_t Int();
  std::int64_t Long();
  // A missing buffer (length -1) reads as empty.
  std::string_view Bytes();
  std::string_view String() { return Bytes(); }
  // The number of elements of a vector, each of which takes at least
  // `smallest_element` bytes: never more than the rest can hold.
  std::size_t VectorSize(std::size_t smallest_element);

  std::size_t remaining() const { return rest_.size(); }

 private:
  std::string_view Take(std::size_t count, const char* what);

  std::string_view rest_;
};

}  // namespace nodepool::zk

namespace nodepool::zk::protocol {

// The records of ZooKeeper's client protocol (coordination.md 2.4, 2.9), without
// frames, sockets and state. Every frame is a 32-bit length and that many bytes.

enum class OpCode : std::int32_t {
  kCreate = 1,
  kDelete = 2,
  kExists = 3,
  kGetData = 4,
  kSetData = 5,
  kGetAcl = 6,
  kSetAcl = 7,
  kGetChildren = 8,
  kSync = 9,
  kPing = 11,
  kGetChildren2 = 12,
  kCheck = 13,
  kMulti = 14,
  kCreate2 = 15,
  kCheckWatches = 17,
  kRemoveWatches = 18,
  kCreateContainer = 19,
  kCreateTtl = 21,
  kMultiRead = 22,
  kAuth = 100,
  kSetWatches = 101,
  kGetEphemerals = 103,
  kCountDescendants = 104,
  kSetWatches2 = 105,
  kAddWatch = 106,
  kWhoAmI = 107,
  kCloseSession = -11,
};

// For log lines and errors: "get", "create" ...
std::string_view NameOf(OpCode op);

// Answers that belong to no operation carry these instead of a request's number.
constexpr std::int32_t kEventXid = -1;
constexpr std::int32_t kPingXid = -2;
constexpr std::int32_t kAuthXid = -4;
constexpr std::int32_t kSetWatchesXid = -8;

struct ConnectRequest {
  std::int64_t last_zxid = 0;
  std::int32_t timeout_ms = 0;
  std::int64_t session_id = 0;  // 0: a new session
  std::string password;         // 16 bytes
};

struct ConnectResponse {
  std::int32_t timeout_ms = 0;  // 0 or less: the session has expired
  std::int64_t session_id = 0;
  std::string password;
  bool read_only = false;
};

struct ReplyHeader {
  std::int32_t xid = 0;
  std::int64_t zxid = 0;
  Code code = Code::kOk;
};

// Requests. A path is made of the chroot and the client's path; the caller has checked it.
struct Path {
  std::string_view chroot;
  std::string_view path;
};

void Write(JuteWriter& out, const ConnectRequest& request);
void WriteHeader(JuteWriter& out, std::int32_t xid, OpCode op);
// `ttl_ms` is used by the TTL modes alone.
void WriteCreate(JuteWriter& out, Path path, std::string_view data, CreateMode mode, std::int64_t ttl_ms = 0);
void WritePathAndWatch(JuteWriter& out, Path path, bool watch);
void WriteSet(JuteWriter& out, Path path, std::string_view data, std::int32_t version);
void WritePathAndInt(JuteWriter& out, Path path, std::int32_t number);
void WritePath(JuteWriter& out, Path path);
void WriteMulti(JuteWriter& out, std::string_view chroot, const std::vector<Op>& ops);
void WriteReads(JuteWriter& out, std::string_view chroot, const std::vector<ReadOp>& ops);
void WriteDigestAuth(JuteWriter& out, std::string_view user, std::string_view password);

// The op code that creates with `mode`.
OpCode CreateOpCode(CreateMode mode);
bool IsSequential(CreateMode mode);

// All watches of a client, by kind; each list without the chroot.
struct WatchPaths {
  std::vector<std::string> data;
  std::vector<std::string> exist;
  std::vector<std::string> child;
  std::vector<std::string> persistent;
  std::vector<std::string> recursive;
};

// Bodies of as many SetWatches2 requests as it takes to keep each below about
// `max_bytes`; none when there is nothing to watch.
std::vector<std::string> SetWatchesBodies(const WatchPaths& watches, std::string_view chroot,
                                          std::int64_t zxid, std::size_t max_bytes);

// Answers. All throw Error(kFail) for malformed bytes.
ConnectResponse ReadConnectResponse(JuteReader& in);
ReplyHeader ReadReplyHeader(JuteReader& in);
Stat ReadStat(JuteReader& in);
Created ReadCreated(JuteReader& in);
NodeData ReadNodeData(JuteReader& in);
Children ReadChildren(JuteReader& in);
// The answer to a transaction of `count` operations. ZooKeeper 3.8 sends no stat of a znode that a
// transaction creates; it is then unset.
MultiResult ReadMulti(JuteReader& in, std::size_t count);
// The answer to `ops`.
std::vector<ReadResult> ReadReads(JuteReader& in, const std::vector<ReadOp>& ops);
// Paths keep the chroot. The type is kNone also for kinds this client never asks for.
WatchEvent ReadEvent(JuteReader& in);

}  // namespace nodepool::zk::protocol
