#include "zk/server/request.h"

#include <fmt/format.h>

#include "base/error.h"

namespace nodepool::zk::server {

namespace {

using protocol::OpCode;

constexpr std::size_t kSmallestString = 4;
constexpr std::size_t kSmallestAclEntry = 12;
constexpr std::size_t kMaxPassword = 16;

std::string Text(JuteReader& in) { return std::string(in.String()); }

CreateRequest ReadCreate(JuteReader& in, OpCode op) {
  CreateRequest create;
  create.op.path = Text(in);
  create.op.data = std::string(in.Bytes());
  create.acl = ReadAcl(in);
  create.op.mode = static_cast<CreateMode>(in.Int());
  if (op == OpCode::kCreateTtl) in.Long();
  return create;
}

DeleteOp ReadDelete(JuteReader& in) {
  DeleteOp remove;
  remove.path = Text(in);
  remove.version = in.Int();
  return remove;
}

SetOp ReadSet(JuteReader& in) {
  SetOp set;
  set.path = Text(in);
  set.data = std::string(in.Bytes());
  set.version = in.Int();
  return set;
}

CheckOp ReadCheck(JuteReader& in) {
  CheckOp check;
  check.path = Text(in);
  check.version = in.Int();
  return check;
}

PathRequest ReadPathAndWatch(JuteReader& in) {
  PathRequest read;
  read.path = Text(in);
  read.watch = in.Bool();
  return read;
}

SetAclRequest ReadSetAcl(JuteReader& in) {
  SetAclRequest set;
  set.path = Text(in);
  set.acl = ReadAcl(in);
  set.version = in.Int();
  return set;
}

AddWatchRequest ReadAddWatch(JuteReader& in) {
  AddWatchRequest add;
  add.path = Text(in);
  add.mode = in.Int();
  return add;
}

WatchesRequest ReadWatches(JuteReader& in) {
  WatchesRequest watches;
  watches.path = Text(in);
  watches.kind = in.Int();
  return watches;
}

RestoreWatchesRequest ReadRestoreWatches(JuteReader& in, OpCode op) {
  RestoreWatchesRequest restore;
  restore.seen_zxid = in.Long();
  protocol::WatchPaths& paths = restore.paths;
  std::vector<std::vector<std::string>*> lists{&paths.data, &paths.exist, &paths.child};
  if (op == OpCode::kSetWatches2) lists.insert(lists.end(), {&paths.persistent, &paths.recursive});
  for (std::vector<std::string>* list : lists) {
    std::size_t count = in.VectorSize(kSmallestString);
    for (std::size_t i = 0; i < count; ++i) list->push_back(Text(in));
  }
  return restore;
}

AuthRequest ReadAuth(JuteReader& in) {
  AuthRequest auth;
  in.Int();
  auth.scheme = Text(in);
  auth.credentials = std::string(in.Bytes());
  return auth;
}

// The head of one part of a transaction; nullopt at the end.
std::optional<OpCode> ReadPartHead(JuteReader& in) {
  auto op = static_cast<OpCode>(in.Int());
  bool is_end = in.Bool();
  in.Int();
  if (is_end) return std::nullopt;
  return op;
}

MultiRequest ReadMulti(JuteReader& in) {
  MultiRequest multi;
  while (std::optional<OpCode> op = ReadPartHead(in)) {
    switch (*op) {
      case OpCode::kCreate:
      case OpCode::kCreate2:
      case OpCode::kCreateContainer:
      case OpCode::kCreateTtl:
        multi.parts.push_back({*op, ReadCreate(in, *op)});
        break;
      case OpCode::kSetData:
        multi.parts.push_back({*op, ReadSet(in)});
        break;
      case OpCode::kDelete:
        multi.parts.push_back({*op, ReadDelete(in)});
        break;
      case OpCode::kCheck:
        multi.parts.push_back({*op, ReadCheck(in)});
        break;
      default:
        throw Error(Verdict::kFail,
                    fmt::format("malformed record: operation {} in a transaction", static_cast<int>(*op)));
    }
  }
  return multi;
}

MultiReadRequest ReadMultiRead(JuteReader& in) {
  MultiReadRequest multi;
  while (std::optional<OpCode> op = ReadPartHead(in)) {
    if (*op != OpCode::kGetData && *op != OpCode::kGetChildren) {
      throw Error(Verdict::kFail,
                  fmt::format("malformed record: operation {} among several reads", static_cast<int>(*op)));
    }
    multi.parts.push_back({*op, ReadPathAndWatch(in).path});
  }
  return multi;
}

void ReadBody(JuteReader& in, Request& request) {
  switch (request.op) {
    case OpCode::kCreate:
    case OpCode::kCreate2:
    case OpCode::kCreateContainer:
    case OpCode::kCreateTtl:
      request.body = ReadCreate(in, request.op);
      return;
    case OpCode::kDelete:
      request.body = ReadDelete(in);
      return;
    case OpCode::kExists:
    case OpCode::kGetData:
    case OpCode::kGetChildren:
    case OpCode::kGetChildren2:
      request.body = ReadPathAndWatch(in);
      return;
    case OpCode::kGetAcl:
    case OpCode::kSync:
    case OpCode::kGetEphemerals:
    case OpCode::kCountDescendants:
      request.body = PathRequest{Text(in)};
      return;
    case OpCode::kSetData:
      request.body = ReadSet(in);
      return;
    case OpCode::kSetAcl:
      request.body = ReadSetAcl(in);
      return;
    case OpCode::kAddWatch:
      request.body = ReadAddWatch(in);
      return;
    case OpCode::kCheckWatches:
    case OpCode::kRemoveWatches:
      request.body = ReadWatches(in);
      return;
    case OpCode::kSetWatches:
    case OpCode::kSetWatches2:
      request.body = ReadRestoreWatches(in, request.op);
      return;
    case OpCode::kAuth:
      request.body = ReadAuth(in);
      return;
    case OpCode::kMulti:
      request.body = ReadMulti(in);
      return;
    case OpCode::kMultiRead:
      request.body = ReadMultiRead(in);
      return;
    default:
      return;
  }
}

}  // namespace

protocol::OpCode OperationOf(std::string_view frame) {
  if (frame.size() < 2 * sizeof(std::int32_t)) return {};
  JuteReader in(frame);
  in.Int();
  return static_cast<OpCode>(in.Int());
}

std::optional<std::string_view> PathThatIsRead(std::string_view frame) {
  using enum OpCode;
  OpCode op = OperationOf(frame);
  if (op != kGetData && op != kGetChildren && op != kGetChildren2) return std::nullopt;
  JuteReader in(frame);
  in.Int();
  in.Int();
  return in.String();
}

Request ReadRequest(std::string_view frame) {
  JuteReader in(frame);
  Request request;
  request.xid = in.Int();
  request.op = static_cast<OpCode>(in.Int());
  ReadBody(in, request);
  return request;
}

ConnectRequestFrame ReadConnectRequest(std::string_view frame) {
  JuteReader in(frame);
  ConnectRequestFrame connect;
  in.Int();  // the protocol's version, of which there is one
  connect.request.last_zxid = in.Long();
  connect.request.timeout_ms = in.Int();
  connect.request.session_id = in.Long();
  connect.request.password = std::string(in.Bytes());
  if (connect.request.password.size() > kMaxPassword) {
    throw Error(Verdict::kFail,
                fmt::format("malformed record: a password of {} bytes", connect.request.password.size()));
  }
  connect.is_read_only_known = in.remaining() > 0;
  return connect;
}

void WriteAcl(JuteWriter& out, const Acl* acl) {
  static const Acl open{{permission::kAll, "world", "anyone"}};
  const Acl& entries = acl == nullptr ? open : *acl;
  out.Int(static_cast<std::int32_t>(entries.size()));
  for (const AclEntry& entry : entries) {
    out.Int(entry.permissions);
    out.String(entry.scheme);
    out.String(entry.id);
  }
}

Acl ReadAcl(JuteReader& in) {
  Acl acl;
  std::size_t count = in.VectorSize(kSmallestAclEntry);
  acl.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    AclEntry entry;
    entry.permissions = in.Int();
    entry.scheme = Text(in);
    entry.id = Text(in);
    acl.push_back(std::move(entry));
  }
  return acl;
}

namespace {

constexpr std::int32_t kErrorResult = -1;
constexpr std::int32_t kStateConnected = 3;

}  // namespace

void WriteReplyHeader(JuteWriter& out, const protocol::ReplyHeader& header) {
  out.Int(header.xid);
  out.Long(header.zxid);
  out.Int(static_cast<std::int32_t>(header.code));
}

void WriteStat(JuteWriter& out, const Stat& stat) {
  out.Long(stat.czxid);
  out.Long(stat.mzxid);
  out.Long(stat.ctime);
  out.Long(stat.mtime);
  out.Int(stat.version);
  out.Int(stat.cversion);
  out.Int(stat.aversion);
  out.Long(stat.ephemeral_owner);
  out.Int(stat.data_length);
  out.Int(stat.num_children);
  out.Long(stat.pzxid);
}

void WriteNames(JuteWriter& out, const std::vector<std::string>& names) {
  out.Int(static_cast<std::int32_t>(names.size()));
  for (const std::string& name : names) out.String(name);
}

void WritePartHead(JuteWriter& out, std::int32_t kind, std::int32_t code) {
  out.Int(kind);
  out.Bool(false);
  out.Int(code);
}

void WritePartsEnd(JuteWriter& out) {
  out.Int(-1);
  out.Bool(true);
  out.Int(-1);
}

void WriteMultiResult(JuteWriter& out, const std::vector<OpCode>& ops, const MultiResult& result) {
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const OpResult& part = result.results[i];
    if (!result.ok()) {
      WritePartHead(out, kErrorResult, static_cast<std::int32_t>(part.code));
      out.Int(static_cast<std::int32_t>(part.code));
      continue;
    }
    bool is_creation = !part.path.empty();
    OpCode kind = is_creation && ops[i] != OpCode::kCreate ? OpCode::kCreate2 : ops[i];
    WritePartHead(out, static_cast<std::int32_t>(kind), 0);
    if (is_creation) out.String(part.path);
    if (kind == OpCode::kCreate2 || kind == OpCode::kSetData) WriteStat(out, part.stat);
  }
  WritePartsEnd(out);
}

void AppendEvent(std::string& out, const WatchEvent& event) {
  AppendFrame(out, [&](JuteWriter& writer) {
    WriteReplyHeader(writer, {protocol::kEventXid, event.zxid, Code::kOk});
    writer.Int(static_cast<std::int32_t>(event.type));
    writer.Int(kStateConnected);
    writer.String(event.path);
  });
}

void AppendConnectResponse(std::string& out, const protocol::ConnectResponse& response,
                           bool is_read_only_known) {
  AppendFrame(out, [&](JuteWriter& writer) {
    writer.Int(0);
    writer.Int(response.timeout_ms);
    writer.Long(response.session_id);
    writer.Bytes(response.password);
    if (is_read_only_known) writer.Bool(false);
  });
}

}  // namespace nodepool::zk::server
