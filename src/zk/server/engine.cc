#include "zk/server/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "zk/client.h"
#include "zk/server/request.h"
#include "zk/znode.h"

namespace nodepool::zk::server {
namespace {

constexpr std::size_t kMaxNames = 16;      // identities of one connection
constexpr std::size_t kPartOverhead = 96;  // bytes of a part's answer beside the data
constexpr std::int32_t kChildWatches = 1;
constexpr std::int32_t kDataWatches = 2;
constexpr std::int32_t kAnyWatches = 3;

bool IsCreateMode(CreateMode mode) {
  return mode >= CreateMode::kPersistent && mode <= CreateMode::kPersistentSequentialTtl;
}

// A create in the form for the tree, or the fault in it.
Result<CreateOp> Resolve(const CreateRequest& request, const Identity& who) {
  if (!IsCreateMode(request.op.mode)) return std::unexpected(Code::kBadArguments);
  if (request.op.path.empty() || request.op.path.front() != '/') return std::unexpected(Code::kBadArguments);
  Result<std::shared_ptr<const Acl>> acl = ResolveAcl(request.acl, who);
  if (!acl) return std::unexpected(acl.error());
  CreateOp op = request.op;
  op.acl = std::move(*acl);
  return op;
}

// A client that may not change the list does not see the secret half of its digests either.
Acl WithoutDigests(Acl acl) {
  for (AclEntry& entry : acl) {
    if (entry.scheme == "digest") entry.id = entry.id.substr(0, entry.id.find(':')) + ":x";
  }
  return acl;
}

}  // namespace

Engine::Engine(Limits limits) : limits_(limits) {
  tree_.LimitBytes(limits.tree_bytes);
  tree_.OnChange([this](const DataTree::Change& change) { Changed(change); });
}

void Engine::MarkPath(std::string path) {
  changed_paths_.insert(std::move(path));
  ++change_count_;
}

void Engine::MarkSession(std::int64_t id) {
  changed_sessions_.insert(id);
  ++change_count_;
}

void Engine::Changed(const DataTree::Change& change) {
  const auto& [type, path, zxid] = change.event;
  MarkPath(path);
  if (type != EventType::kDataChanged) MarkPath(ParentPath(path));
  if (type == EventType::kDeleted) NoteEmptied(ParentPath(path));
  for (const auto& [connection_id, event] : watches_.Trigger(change.event)) {
    if (!deliver_) continue;
    bool is_of_parent = event.type == EventType::kChildren;
    deliver_(connection_id, event, (is_of_parent ? change.parent_acl : change.acl).get());
  }
}

void Engine::NoteEmptied(const std::string& parent) {
  if (tree_.IsEmptiedContainer(parent)) emptied_.insert(parent);
}

int Engine::DeleteEmptyContainers() {
  int deleted = 0;
  for (const std::string& path : std::exchange(emptied_, {})) {
    if (tree_.IsEmptiedContainer(path) && tree_.Delete(DeleteOp{path}, 0)) ++deleted;
  }
  return deleted;
}

void Engine::OpenSession(SessionRecord session) {
  tree_.OpenSession(session.id);
  MarkSession(session.id);
  sessions_[session.id] = std::move(session);
}

void Engine::CloseSession(std::int64_t id) {
  if (sessions_.erase(id) == 0) return;
  MarkSession(id);
  tree_.CloseSession(id);
}

const SessionRecord* Engine::FindSession(std::int64_t id) const {
  auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : &found->second;
}

std::size_t Engine::SizeOf(std::string_view path) const {
  constexpr int kNameSize = 16;
  Result<Stat> stat = tree_.Exists(path);
  return stat ? static_cast<std::size_t>(stat->data_length + kNameSize * stat->num_children) : 0;
}

Engine::Next Engine::Execute(const Request& request, Peer& peer, WallTime now, std::string& out) {
  Code code = Code::kOk;
  AppendFrame(out, [&](JuteWriter& frame) {
    std::size_t start = out.size();
    WriteReplyHeader(frame, {request.xid, 0, code});
    std::size_t body = out.size();
    code = Answer(request, peer, now, frame);
    if (code != Code::kOk) out.resize(body);
    std::int64_t zxid = request.op == OpCode::kAuth ? 0 : tree_.last_zxid();
    std::string header;
    JuteWriter header_writer(header);
    WriteReplyHeader(header_writer, {request.xid, zxid, code});
    out.replace(start, header.size(), header);
  });
  bool is_end = request.op == OpCode::kCloseSession || code == Code::kAuthFailed;
  return is_end ? Next::kClose : Next::kContinue;
}

Code Engine::Answer(const Request& request, Peer& peer, WallTime now, JuteWriter& out) {
  switch (request.op) {
    case OpCode::kCreate:
    case OpCode::kCreate2:
    case OpCode::kCreateContainer:
    case OpCode::kCreateTtl:
      return Create(std::get<CreateRequest>(request.body), request.op, peer, now, out);
    case OpCode::kDelete: {
      Result<> deleted = tree_.Delete(std::get<DeleteOp>(request.body), peer.session, &peer.who);
      return deleted ? Code::kOk : deleted.error();
    }
    case OpCode::kSetData: {
      Result<Stat> stat = tree_.Set(std::get<SetOp>(request.body), peer.session, now, &peer.who);
      if (stat) WriteStat(out, *stat);
      return stat ? Code::kOk : stat.error();
    }
    case OpCode::kMulti:
      return Multi(std::get<MultiRequest>(request.body), peer, now, out);
    case OpCode::kMultiRead:
      return MultiRead(std::get<MultiReadRequest>(request.body), peer, out);
    case OpCode::kExists:
    case OpCode::kGetData:
    case OpCode::kGetChildren:
    case OpCode::kGetChildren2:
      return Read(std::get<PathRequest>(request.body), request.op, peer, out);
    case OpCode::kSync:
      out.String(std::get<PathRequest>(request.body).path);
      return Code::kOk;
    case OpCode::kGetAcl:
      return GetAcl(std::get<PathRequest>(request.body).path, peer, out);
    case OpCode::kSetAcl:
      return SetAcl(std::get<SetAclRequest>(request.body), peer, out);
    case OpCode::kGetEphemerals: {
      std::vector<std::string> found;
      std::size_t bytes = 0;
      for (const std::string& path : tree_.Ephemerals(peer.session)) {
        if (!path.starts_with(std::get<PathRequest>(request.body).path)) continue;
        found.push_back(path);
        CheckAnswer(bytes += path.size());
      }
      WriteNames(out, found);
      return Code::kOk;
    }
    case OpCode::kCountDescendants: {
      const std::string& path = std::get<PathRequest>(request.body).path;
      Result<std::size_t> count = tree_.CountBelow(path);
      if (!count) return Code::kNoNode;
      if (!MayRead(path, peer)) return Code::kNoAuth;
      out.Int(static_cast<std::int32_t>(*count));
      return Code::kOk;
    }
    case OpCode::kAddWatch: {
      Code code = AddWatch(std::get<AddWatchRequest>(request.body), peer);
      if (code == Code::kOk) out.Int(0);  // Java's client wants an error's number here
      return code;
    }
    case OpCode::kCheckWatches:
    case OpCode::kRemoveWatches:
      return ChangeWatches(std::get<WatchesRequest>(request.body), request.op, peer);
    case OpCode::kSetWatches:
    case OpCode::kSetWatches2:
      RestoreWatches(std::get<RestoreWatchesRequest>(request.body), peer);
      return Code::kOk;
    case OpCode::kAuth: {
      const AuthRequest& auth = std::get<AuthRequest>(request.body);
      std::pair name(auth.scheme, DigestId(auth.credentials));
      auto& names = peer.who.names;
      if (std::ranges::find(names, name) != names.end()) return Code::kOk;
      if (auth.scheme != "digest" || names.size() >= kMaxNames) return Code::kAuthFailed;
      names.push_back(std::move(name));
      return Code::kOk;
    }
    case OpCode::kWhoAmI:
      out.Int(static_cast<std::int32_t>(peer.who.names.size()));
      for (const auto& [scheme, id] : peer.who.names) {
        out.String(scheme);
        out.String(id.substr(0, id.find(':')));
      }
      return Code::kOk;
    case OpCode::kPing:
      return Code::kOk;
    case OpCode::kCloseSession:
      CloseSession(peer.session);
      return Code::kOk;
    default:
      return Code::kUnimplemented;
  }
}

// A write that never reaches the tree still uses up a transaction's number.
Code Engine::Refuse(Code code) {
  (void)tree_.Multi({}, 0, WallTime());
  return code;
}

Code Engine::Create(const CreateRequest& request, OpCode op, const Peer& peer, WallTime now,
                    JuteWriter& out) {
  Result<CreateOp> resolved = Resolve(request, peer.who);
  if (!resolved) return Refuse(resolved.error());
  Result<Created> created = tree_.Create(*resolved, peer.session, now, &peer.who);
  if (!created) return created.error();
  out.String(created->path);
  if (op != OpCode::kCreate) WriteStat(out, created->stat);
  return Code::kOk;
}

Code Engine::Multi(const MultiRequest& request, const Peer& peer, WallTime now, JuteWriter& out) {
  // A refused check in the place of the first malformed create: the operations before it are still
  // tried, since a fault of theirs is reported first.
  const Op refused = CheckOp{"/", -2};
  std::vector<OpCode> kinds;
  std::vector<Op> ops;
  std::size_t wrong_at = request.parts.size();
  Code wrong = Code::kOk;
  for (const MultiRequest::Part& part : request.parts) {
    kinds.push_back(part.op);
    if (const auto* create = std::get_if<CreateRequest>(&part.body)) {
      Result<CreateOp> resolved = Resolve(*create, peer.who);
      if (!resolved && wrong == Code::kOk) {
        wrong = resolved.error();
        wrong_at = ops.size();
      }
      ops.push_back(resolved ? Op(std::move(*resolved)) : refused);
    } else if (const auto* set = std::get_if<SetOp>(&part.body)) {
      ops.push_back(*set);
    } else if (const auto* remove = std::get_if<DeleteOp>(&part.body)) {
      ops.push_back(*remove);
    } else {
      ops.push_back(std::get<CheckOp>(part.body));
    }
  }
  MultiResult result = tree_.Multi(ops, peer.session, now, &peer.who);
  if (!result.ok() && static_cast<std::size_t>(result.failed) == wrong_at) {
    result.results[wrong_at].code = wrong;
  }
  WriteMultiResult(out, kinds, result);
  return Code::kOk;
}

bool Engine::MayRead(const std::string& path, const Peer& peer) const {
  Result<std::shared_ptr<const Acl>> acl = tree_.AclOf(path);
  return !acl || Permits(acl->get(), permission::kRead, peer.who);
}

Code Engine::Get(const std::string& path, const Peer& peer, JuteWriter& out) const {
  Result<NodeData> node = tree_.Get(path);
  if (!node) return node.error();
  if (!MayRead(path, peer)) return Code::kNoAuth;
  out.Bytes(node->data);
  WriteStat(out, node->stat);
  return Code::kOk;
}

Code Engine::GetChildren(const std::string& path, OpCode op, const Peer& peer, JuteWriter& out) const {
  Result<Children> children = tree_.GetChildren(path);
  if (!children) return children.error();
  if (!MayRead(path, peer)) return Code::kNoAuth;
  WriteNames(out, children->names);
  if (op == OpCode::kGetChildren2) WriteStat(out, children->stat);
  return Code::kOk;
}

// A short request must not lead to an answer that fills the memory.
void Engine::CheckAnswer(std::size_t bytes) const {
  if (bytes <= limits_.answer_bytes) return;
  throw Error(Verdict::kFail,
              fmt::format("the answer to its request would be larger than {} bytes", limits_.answer_bytes));
}

Code Engine::MultiRead(const MultiReadRequest& request, const Peer& peer, JuteWriter& out) const {
  // The answer is copied whenever it grows.
  std::size_t expected = 0;
  for (const MultiReadRequest::Part& part : request.parts) expected += kPartOverhead + SizeOf(part.path);
  out.Expect(std::min(expected, limits_.answer_bytes));
  std::size_t bytes = 0;
  for (const MultiReadRequest::Part& part : request.parts) {
    std::string body;
    JuteWriter writer(body);
    Code code = part.op == OpCode::kGetData ? Get(part.path, peer, writer)
                                            : GetChildren(part.path, part.op, peer, writer);
    bool is_ok = code == Code::kOk;
    WritePartHead(out, is_ok ? static_cast<std::int32_t>(part.op) : -1, static_cast<std::int32_t>(code));
    CheckAnswer(bytes += body.size());
    if (is_ok) {
      out.Raw(body);
    } else {
      out.Int(static_cast<std::int32_t>(code));
    }
  }
  WritePartsEnd(out);
  return Code::kOk;
}

Code Engine::Read(const PathRequest& request, OpCode op, const Peer& peer, JuteWriter& out) {
  if (request.watch) CheckRoomForWatch(peer, ServerWatches::BytesOf(request.path));
  Code code = Code::kOk;
  if (op == OpCode::kExists) {
    Result<Stat> stat = tree_.Exists(request.path);
    if (stat) WriteStat(out, *stat);
    code = stat ? Code::kOk : stat.error();
  } else if (op == OpCode::kGetData) {
    code = Get(request.path, peer, out);
  } else {
    code = GetChildren(request.path, op, peer, out);
  }
  bool is_watched = request.watch && (code == Code::kOk || (op == OpCode::kExists && code == Code::kNoNode));
  if (!is_watched) return code;
  if (op == OpCode::kExists || op == OpCode::kGetData) {
    watches_.AddData(request.path, peer.connection_id);
  } else {
    watches_.AddChildren(request.path, peer.connection_id);
  }
  return code;
}

Code Engine::GetAcl(const std::string& path, const Peer& peer, JuteWriter& out) const {
  Result<std::shared_ptr<const Acl>> acl = tree_.AclOf(path);
  Result<Stat> stat = tree_.Exists(path);
  if (!acl || !stat) return acl ? stat.error() : acl.error();
  if (!Permits(acl->get(), permission::kRead | permission::kAdmin, peer.who)) return Code::kNoAuth;
  if (Permits(acl->get(), permission::kAdmin, peer.who)) {
    WriteAcl(out, acl->get());
  } else {
    Acl shown = WithoutDigests(**acl);
    WriteAcl(out, &shown);
  }
  WriteStat(out, *stat);
  return Code::kOk;
}

Code Engine::SetAcl(const SetAclRequest& request, const Peer& peer, JuteWriter& out) {
  Result<std::shared_ptr<const Acl>> acl = ResolveAcl(request.acl, peer.who);
  if (!acl) return Refuse(acl.error());
  Result<Stat> stat = tree_.SetAcl(request.path, std::move(*acl), request.version, &peer.who);
  if (!stat) return stat.error();
  MarkPath(request.path);
  WriteStat(out, *stat);
  return Code::kOk;
}

void Engine::CheckRoomForWatch(const Peer& peer, std::size_t bytes) const {
  std::size_t own = watches_.BytesOf(peer.connection_id) + bytes;
  if (own > limits_.watch_bytes) {
    throw Error(Verdict::kFail,
                fmt::format("its watches would take more than {} bytes", limits_.watch_bytes));
  }
  if (own > limits_.few_watch_bytes && watches_.bytes() + bytes > limits_.all_watch_bytes) {
    throw Error(Verdict::kFail, fmt::format("the watches of all clients would take more than {} bytes",
                                            limits_.all_watch_bytes));
  }
}

Code Engine::AddWatch(const AddWatchRequest& request, const Peer& peer) {
  bool is_mode = request.mode == static_cast<std::int32_t>(WatchMode::kPersistent) ||
                 request.mode == static_cast<std::int32_t>(WatchMode::kPersistentRecursive);
  if (!is_mode || !IsValidPath(request.path)) return Code::kBadArguments;
  CheckRoomForWatch(peer, ServerWatches::BytesOf(request.path));
  watches_.AddStaying(request.path, static_cast<WatchMode>(request.mode), peer.connection_id);
  return Code::kOk;
}

Code Engine::ChangeWatches(const WatchesRequest& request, OpCode op, const Peer& peer) {
  if (request.kind < kChildWatches || request.kind > kAnyWatches) return Code::kBadArguments;
  bool is_data = request.kind != kChildWatches;
  bool is_children = request.kind != kDataWatches;
  bool is_found = op == OpCode::kCheckWatches
                      ? watches_.Has(request.path, peer.connection_id, is_data, is_children)
                      : watches_.Remove(request.path, peer.connection_id, is_data, is_children);
  return is_found ? Code::kOk : Code::kNoWatcher;
}

void Engine::RestoreWatches(const RestoreWatchesRequest& request, const Peer& peer) {
  std::size_t bytes = 0;
  const protocol::WatchPaths& paths = request.paths;
  for (const auto* list : {&paths.data, &paths.exist, &paths.child, &paths.persistent, &paths.recursive}) {
    for (const std::string& path : *list) {
      if (!IsValidPath(path)) {
        throw Error(Verdict::kFail, fmt::format("it watches \"{}\", which is not a path", Excerpt(path)));
      }
      bytes += ServerWatches::BytesOf(path);
    }
  }
  CheckRoomForWatch(peer, bytes);
  for (const WatchEvent& missed : watches_.Restore(tree_, peer.connection_id, request.seen_zxid, paths)) {
    // It could read the znodes when it set the watches.
    if (deliver_) deliver_(peer.connection_id, missed, nullptr);
  }
}

void Engine::Restore(std::vector<SessionRecord> sessions, std::vector<DataTree::Snapshot> znodes,
                     std::int64_t zxid) {
  for (SessionRecord& session : sessions) {
    tree_.RestoreSession(session.id);
    std::int64_t id = session.id;
    sessions_[id] = std::move(session);
  }
  for (DataTree::Snapshot& znode : znodes) {
    std::string path = znode.path;
    if (!tree_.Restore(std::move(znode))) {
      throw Error(Verdict::kInvalid,
                  fmt::format("the znode {} is stored without its parent or its owner", Excerpt(path, 200)));
    }
    if (tree_.IsEmptiedContainer(path)) emptied_.insert(std::move(path));
  }
  tree_.ContinueAfter(zxid);
}

Changes Engine::TakeChanges() {
  Changes changes;
  for (const std::string& path : std::exchange(changed_paths_, {})) {
    if (std::optional<DataTree::Snapshot> znode = tree_.Export(path)) {
      changes.stored.push_back(std::move(*znode));
    } else {
      changes.removed.push_back(path);
    }
  }
  for (std::int64_t id : std::exchange(changed_sessions_, {})) {
    if (const SessionRecord* session = FindSession(id)) {
      changes.opened.push_back(*session);
    } else {
      changes.closed.push_back(id);
    }
  }
  changes.zxid = tree_.last_zxid();
  return changes;
}

}  // namespace nodepool::zk::server
