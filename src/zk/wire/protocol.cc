#include "zk/wire/protocol.h"

#include <fmt/format.h>

#include <boost/endian/conversion.hpp>

#include "base/error.h"

namespace nodepool::zk {

void JuteWriter::Int(std::int32_t value) {
  unsigned char bytes[4];
  boost::endian::store_big_s32(bytes, value);
  out_.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
}

void JuteWriter::Long(std::int64_t value) {
  unsigned char bytes[8];
  boost::endian::store_big_s64(bytes, value);
  out_.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
}

void JuteWriter::Bytes(std::string_view value) {
  Int(static_cast<std::int32_t>(value.size()));
  out_.append(value);
}

void JuteWriter::String(std::string_view head, std::string_view tail) {
  Int(static_cast<std::int32_t>(head.size() + tail.size()));
  out_.append(head);
  out_.append(tail);
}

void JuteWriter::PatchInt(std::size_t position, std::int32_t value) {
  boost::endian::store_big_s32(reinterpret_cast<unsigned char*>(&out_[position]), value);
}

std::string_view JuteReader::Take(std::size_t count, const char* what) {
  if (count > rest_.size()) {
    throw Error(Verdict::kFail, fmt::format("malformed record: {} of {} bytes expected, {} bytes left", what,
                                            count, rest_.size()));
  }
  std::string_view taken = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return taken;
}

bool JuteReader::Bool() { return Take(1, "a boolean")[0] != 0; }

std::int32_t JuteReader::Int() {
  return boost::endian::load_big_s32(reinterpret_cast<const unsigned char*>(Take(4, "an int").data()));
}

std::int64_t JuteReader::Long() {
  return boost::endian::load_big_s64(reinterpret_cast<const unsigned char*>(Take(8, "a long").data()));
}

std::string_view JuteReader::Bytes() {
  std::int32_t size = Int();
  if (size == -1) return {};
  if (size < 0) throw Error(Verdict::kFail, fmt::format("malformed record: a buffer of {} bytes", size));
  return Take(static_cast<std::size_t>(size), "a buffer");
}

std::size_t JuteReader::VectorSize(std::size_t smallest_element) {
  std::int32_t count = Int();
  if (count == -1) return 0;
  if (count < 0 || static_cast<std::size_t>(count) > rest_.size() / smallest_element) {
    throw Error(Verdict::kFail,
                fmt::format("malformed record: a list of {} elements in {} bytes", count, rest_.size()));
  }
  return static_cast<std::size_t>(count);
}

}  // namespace nodepool::zk

namespace nodepool::zk::protocol {

namespace {

constexpr std::int32_t kErrorResult = -1;
constexpr std::size_t kPasswordSize = 16;
constexpr std::size_t kSmallestString = 4;

// The chroot's own path has no slash at its end.
void PutPath(JuteWriter& out, Path path) {
  if (path.path == "/" && !path.chroot.empty()) path.path = "";
  out.String(path.chroot, path.path);
}

void WriteOpenAcl(JuteWriter& out) {
  out.Int(1);
  out.Int(31);  // all permissions
  out.String("world");
  out.String("anyone");
}

void WriteMultiHeader(JuteWriter& out, std::int32_t type, bool done) {
  out.Int(type);
  out.Bool(done);
  out.Int(-1);
}

void WriteOp(JuteWriter& out, std::string_view chroot, const CreateOp& op) {
  WriteMultiHeader(out, static_cast<std::int32_t>(CreateOpCode(op.mode)), false);
  WriteCreate(out, {chroot, op.path}, op.data, op.mode);
}

void WriteOp(JuteWriter& out, std::string_view chroot, const SetOp& op) {
  WriteMultiHeader(out, static_cast<std::int32_t>(OpCode::kSetData), false);
  WriteSet(out, {chroot, op.path}, op.data, op.version);
}

void WriteOp(JuteWriter& out, std::string_view chroot, const DeleteOp& op) {
  WriteMultiHeader(out, static_cast<std::int32_t>(OpCode::kDelete), false);
  WritePathAndInt(out, {chroot, op.path}, op.version);
}

void WriteOp(JuteWriter& out, std::string_view chroot, const CheckOp& op) {
  WriteMultiHeader(out, static_cast<std::int32_t>(OpCode::kCheck), false);
  WritePathAndInt(out, {chroot, op.path}, op.version);
}

OpResult ReadOpResult(JuteReader& in, std::int32_t type) {
  OpResult result;
  switch (static_cast<OpCode>(type)) {
    case OpCode::kCreate:
      result.path = std::string(in.String());
      return result;
    case OpCode::kCreate2:
    case OpCode::kCreateContainer:
    case OpCode::kCreateTtl: {
      Created created = ReadCreated(in);
      result.path = std::move(created.path);
      result.stat = created.stat;
      return result;
    }
    case OpCode::kSetData:
      result.stat = ReadStat(in);
      return result;
    case OpCode::kDelete:
    case OpCode::kCheck:
      return result;
    default:
      break;
  }
  if (type != kErrorResult) {
    throw Error(Verdict::kFail, fmt::format("malformed record: a transaction result of kind {}", type));
  }
  result.code = static_cast<Code>(in.Int());
  return result;
}

OpCode OpCodeOf(const ReadOp& op) {
  return op.kind == ReadOp::Kind::kData ? OpCode::kGetData : OpCode::kGetChildren;
}

// The kind of the next of `count` parts of an answer, of which `i` are read; checks that there
// are as many.
std::int32_t ReadPartHead(JuteReader& in, std::size_t i, std::size_t count) {
  std::int32_t kind = in.Int();
  bool is_end = in.Bool();
  in.Int();  // the error, which the body repeats
  if (is_end != (i == count)) {
    throw Error(Verdict::kFail, fmt::format("malformed record: {} operations have {} {} results", count,
                                            is_end ? "only" : "more than", i));
  }
  return kind;
}

std::vector<std::string> ReadNames(JuteReader& in) {
  std::vector<std::string> names;
  std::size_t count = in.VectorSize(kSmallestString);
  names.reserve(count);
  for (std::size_t i = 0; i < count; ++i) names.emplace_back(in.String());
  return names;
}

}  // namespace

std::string_view NameOf(OpCode op) {
  switch (op) {
    case OpCode::kCreate:
      return "create";
    case OpCode::kDelete:
      return "delete";
    case OpCode::kExists:
      return "exists";
    case OpCode::kGetData:
      return "get";
    case OpCode::kSetData:
      return "set";
    case OpCode::kSync:
      return "sync";
    case OpCode::kPing:
      return "ping";
    case OpCode::kGetAcl:
      return "get access list";
    case OpCode::kSetAcl:
      return "set access list";
    case OpCode::kGetChildren:
    case OpCode::kGetChildren2:
      return "get children";
    case OpCode::kCheck:
      return "check";
    case OpCode::kMulti:
      return "transaction";
    case OpCode::kCreate2:
      return "create";
    case OpCode::kCreateContainer:
      return "create container";
    case OpCode::kCheckWatches:
      return "check watches";
    case OpCode::kRemoveWatches:
      return "remove watches";
    case OpCode::kCreateTtl:
      return "create with time to live";
    case OpCode::kMultiRead:
      return "several reads";
    case OpCode::kAuth:
      return "authentication";
    case OpCode::kGetEphemerals:
      return "get ephemerals";
    case OpCode::kCountDescendants:
      return "count descendants";
    case OpCode::kSetWatches:
    case OpCode::kSetWatches2:
      return "set watches";
    case OpCode::kAddWatch:
      return "add watch";
    case OpCode::kWhoAmI:
      return "who am I";
    case OpCode::kCloseSession:
      return "close";
  }
  return "unknown operation";
}

void Write(JuteWriter& out, const ConnectRequest& request) {
  out.Int(0);  // protocol version
  out.Long(request.last_zxid);
  out.Int(request.timeout_ms);
  out.Long(request.session_id);
  out.Bytes(request.password);
  out.Bool(false);  // a read-only server will not do
}

void WriteHeader(JuteWriter& out, std::int32_t xid, OpCode op) {
  out.Int(xid);
  out.Int(static_cast<std::int32_t>(op));
}

void WriteCreate(JuteWriter& out, Path path, std::string_view data, CreateMode mode, std::int64_t ttl_ms) {
  if (IsSequential(mode)) {
    out.String(path.chroot, path.path);  // the number may follow the slash
  } else {
    PutPath(out, path);
  }
  out.Bytes(data);
  WriteOpenAcl(out);
  out.Int(static_cast<std::int32_t>(mode));
  if (CreateOpCode(mode) == OpCode::kCreateTtl) out.Long(ttl_ms);
}

void WritePathAndWatch(JuteWriter& out, Path path, bool watch) {
  PutPath(out, path);
  out.Bool(watch);
}

void WriteSet(JuteWriter& out, Path path, std::string_view data, std::int32_t version) {
  PutPath(out, path);
  out.Bytes(data);
  out.Int(version);
}

void WritePathAndInt(JuteWriter& out, Path path, std::int32_t number) {
  PutPath(out, path);
  out.Int(number);
}

void WritePath(JuteWriter& out, Path path) { PutPath(out, path); }

void WriteMulti(JuteWriter& out, std::string_view chroot, const std::vector<Op>& ops) {
  for (const Op& op : ops) {
    std::visit([&](const auto& kind) { WriteOp(out, chroot, kind); }, op);
  }
  WriteMultiHeader(out, -1, true);
}

void WriteReads(JuteWriter& out, std::string_view chroot, const std::vector<ReadOp>& ops) {
  for (const ReadOp& op : ops) {
    WriteMultiHeader(out, static_cast<std::int32_t>(OpCodeOf(op)), false);
    WritePathAndWatch(out, {chroot, op.path}, false);
  }
  WriteMultiHeader(out, -1, true);
}

void WriteDigestAuth(JuteWriter& out, std::string_view user, std::string_view password) {
  out.Int(0);
  out.String("digest");
  std::string credentials = fmt::format("{}:{}", user, password);
  out.Bytes(credentials);
}

OpCode CreateOpCode(CreateMode mode) {
  switch (mode) {
    case CreateMode::kContainer:
      return OpCode::kCreateContainer;
    case CreateMode::kPersistentTtl:
    case CreateMode::kPersistentSequentialTtl:
      return OpCode::kCreateTtl;
    default:
      return OpCode::kCreate2;
  }
}

bool IsSequential(CreateMode mode) {
  return mode == CreateMode::kPersistentSequential || mode == CreateMode::kEphemeralSequential ||
         mode == CreateMode::kPersistentSequentialTtl;
}

std::vector<std::string> SetWatchesBodies(const WatchPaths& watches, std::string_view chroot,
                                          std::int64_t zxid, std::size_t max_bytes) {
  using List = std::vector<std::string>;
  const List* lists[] = {&watches.data, &watches.exist, &watches.child, &watches.persistent,
                         &watches.recursive};
  constexpr std::size_t kLists = std::size(lists);
  std::size_t positions[kLists] = {};
  std::vector<std::string> bodies;
  auto is_done = [&] {
    for (std::size_t i = 0; i < kLists; ++i) {
      if (positions[i] < lists[i]->size()) return false;
    }
    return true;
  };
  while (!is_done()) {
    std::string& body = bodies.emplace_back();
    JuteWriter out(body);
    out.Long(zxid);
    for (std::size_t i = 0; i < kLists; ++i) {
      std::size_t count_position = out.size();
      std::int32_t count = 0;
      out.Int(count);
      // At least one path per body, so that this ends.
      while (positions[i] < lists[i]->size() && (count == 0 || out.size() < max_bytes)) {
        PutPath(out, {chroot, (*lists[i])[positions[i]++]});
        ++count;
      }
      out.PatchInt(count_position, count);
    }
  }
  return bodies;
}

ConnectResponse ReadConnectResponse(JuteReader& in) {
  std::int32_t version = in.Int();
  if (version != 0) throw Error(Verdict::kFail, fmt::format("unknown protocol version {}", version));
  ConnectResponse response;
  response.timeout_ms = in.Int();
  response.session_id = in.Long();
  response.password = std::string(in.Bytes());
  if (response.password.size() > kPasswordSize) {
    throw Error(Verdict::kFail, fmt::format("a session password of {} bytes", response.password.size()));
  }
  if (in.remaining() > 0) response.read_only = in.Bool();  // missing before 3.4
  return response;
}

ReplyHeader ReadReplyHeader(JuteReader& in) {
  ReplyHeader header;
  header.xid = in.Int();
  header.zxid = in.Long();
  header.code = static_cast<Code>(in.Int());
  return header;
}

Stat ReadStat(JuteReader& in) {
  Stat stat;
  stat.czxid = in.Long();
  stat.mzxid = in.Long();
  stat.ctime = in.Long();
  stat.mtime = in.Long();
  stat.version = in.Int();
  stat.cversion = in.Int();
  stat.aversion = in.Int();
  stat.ephemeral_owner = in.Long();
  stat.data_length = in.Int();
  stat.num_children = in.Int();
  stat.pzxid = in.Long();
  return stat;
}

Created ReadCreated(JuteReader& in) {
  Created created;
  created.path = std::string(in.String());
  created.stat = ReadStat(in);
  return created;
}

NodeData ReadNodeData(JuteReader& in) {
  NodeData node;
  node.data = std::string(in.Bytes());
  node.stat = ReadStat(in);
  return node;
}

Children ReadChildren(JuteReader& in) {
  Children children;
  children.names = ReadNames(in);
  children.stat = ReadStat(in);
  return children;
}

MultiResult ReadMulti(JuteReader& in, std::size_t count) {
  MultiResult answer;
  for (std::size_t i = 0; i <= count; ++i) {
    std::int32_t kind = ReadPartHead(in, i, count);
    if (i < count) answer.results.push_back(ReadOpResult(in, kind));
  }
  for (std::size_t i = 0; i < count && answer.failed < 0; ++i) {
    Code code = answer.results[i].code;
    if (code != Code::kOk && code != Code::kRuntimeInconsistency) answer.failed = static_cast<int>(i);
  }
  return answer;
}

std::vector<ReadResult> ReadReads(JuteReader& in, const std::vector<ReadOp>& ops) {
  std::vector<ReadResult> results(ops.size());
  for (std::size_t i = 0; i <= ops.size(); ++i) {
    std::int32_t kind = ReadPartHead(in, i, ops.size());
    if (i == ops.size()) break;
    if (kind == kErrorResult) {
      results[i].code = static_cast<Code>(in.Int());
    } else if (kind != static_cast<std::int32_t>(OpCodeOf(ops[i]))) {
      throw Error(Verdict::kFail, fmt::format("malformed record: a result of kind {} of a read", kind));
    } else if (ops[i].kind == ReadOp::Kind::kData) {
      results[i].node = ReadNodeData(in);
    } else {
      results[i].names = ReadNames(in);
    }
  }
  return results;
}

WatchEvent ReadEvent(JuteReader& in) {
  std::int32_t type = in.Int();
  in.Int();  // the state of the connection, which its owner knows better
  WatchEvent event;
  event.path = std::string(in.String());
  if (type >= static_cast<std::int32_t>(EventType::kCreated) &&
      type <= static_cast<std::int32_t>(EventType::kChildren)) {
    event.type = static_cast<EventType>(type);
  }
  return event;
}

}  // namespace nodepool::zk::protocol
