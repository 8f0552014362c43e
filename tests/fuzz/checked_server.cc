#include "checked_server.h"

#include <algorithm>

#include "zk/server/request.h"

namespace nodepool::zk::server {
namespace {

using protocol::OpCode;

void Expect(bool is_right) {
  if (!is_right) __builtin_trap();
}

// The part of a stat that the model has.
Stat Known(Stat stat) {
  stat.czxid = stat.mzxid = stat.pzxid = stat.ctime = stat.mtime = 0;
  return stat;
}

OpCode CodeOf(const Op& op) {
  if (std::holds_alternative<CheckOp>(op)) return OpCode::kCheck;
  if (const auto* create = std::get_if<CreateOp>(&op)) return protocol::CreateOpCode(create->mode);
  return std::holds_alternative<SetOp>(op) ? OpCode::kSetData : OpCode::kDelete;
}

void Encode(JuteWriter& out, const Op& op) {
  if (const auto* create = std::get_if<CreateOp>(&op)) {
    out.String(create->path);
    out.Bytes(create->data);
    WriteAcl(out, create->acl.get());
    out.Int(static_cast<std::int32_t>(create->mode));
  } else if (const auto* set = std::get_if<SetOp>(&op)) {
    protocol::WriteSet(out, {"", set->path}, set->data, set->version);
  } else if (const auto* check = std::get_if<CheckOp>(&op)) {
    protocol::WritePathAndInt(out, {"", check->path}, check->version);
  } else {
    const auto& remove = std::get<DeleteOp>(op);
    protocol::WritePathAndInt(out, {"", remove.path}, remove.version);
  }
}

void ByConnection(std::vector<WatchModel::Told>& told) {
  std::ranges::stable_sort(told, {}, &WatchModel::Told::connection);
}

}  // namespace

CheckedServer::CheckedServer() {
  StartEngine();
  for (std::int64_t session = 1; session <= kSessions; ++session) {
    engine_->OpenSession({session, "0123456789abcdef", 1000});
    Connect(session);
  }
}

void CheckedServer::StartEngine() {
  engine_ = std::make_unique<Engine>(Engine::Limits{});
  engine_->OnEvent([this](ServerWatches::ConnectionId connection, const WatchEvent& event, const Acl* acl) {
    auto is_its = [&](const auto& entry) { return entry.second.connection_id == connection; };
    auto peer = std::ranges::find_if(peers_, is_its);
    Expect(peer != peers_.end());
    if (Permits(acl, permission::kRead, peer->second.who))
      told_.push_back({connection, event.type, event.path});
  });
}

// The number of a connection is not used again.
void CheckedServer::Connect(std::int64_t session) {
  Engine::Peer& peer = peers_[session];
  engine_->RemoveWatches(peer.connection_id);
  watches_.RemoveAll(peer.connection_id);
  peer = {++last_connection_, session, {}};
  if (ClientOf(session).is_owner) peer.who.names.push_back(OwnerName());
}

void CheckedServer::CheckEvents() {
  std::vector<WatchModel::Told> expected;
  auto tell = [&](EventType type, const std::string& path, Access access) {
    for (const WatchModel::Told& told : watches_.TellOf(type, path)) {
      for (const auto& [session, peer] : peers_) {
        bool may_read = ClientOf(session).is_owner || access == Access::kOpen || access == Access::kReadOnly;
        if (peer.connection_id == told.connection && may_read) expected.push_back(told);
      }
    }
  };
  for (const TreeModel::Change& change : model_.TakeChanges()) {
    tell(change.type, change.path, change.access);
    if (change.type == EventType::kDataChanged) continue;
    tell(EventType::kChildren, TreeModel::ParentOf(change.path), change.parent_access);
  }
  std::vector<WatchModel::Told> told = std::exchange(told_, {});
  ByConnection(expected);
  ByConnection(told);
  Expect(told == expected);
}

template <class WriteBody>
Code CheckedServer::Ask(std::int64_t session, OpCode op, WriteBody write_body) {
  std::string frame;
  JuteWriter writer(frame);
  protocol::WriteHeader(writer, ++xid_, op);
  write_body(writer);
  answer_.clear();
  engine_->Execute(ReadRequest(frame), peers_.at(session), WallTime(), answer_);
  body_ = JuteReader(answer_);
  Expect(body_.Int() == static_cast<std::int32_t>(body_.remaining()));
  protocol::ReplyHeader header = protocol::ReadReplyHeader(body_);
  Expect(header.xid == xid_);
  return header.code;
}

void CheckedServer::Read(std::int64_t session, const std::string& path, bool watch) {
  auto with_watch = [&](JuteWriter& out) { protocol::WritePathAndWatch(out, {"", path}, watch); };
  auto only_path = [&](JuteWriter& out) { protocol::WritePath(out, {"", path}); };
  Code missing = TreeModel::IsPath(path) ? Code::kNoNode : Code::kBadArguments;
  Code expected = model_.Has(path) ? Code::kOk : missing;
  ServerWatches::ConnectionId connection = peers_.at(session).connection_id;
  Expect(Ask(session, OpCode::kExists, with_watch) == expected);
  if (expected == Code::kOk) Expect(Known(protocol::ReadStat(body_)) == model_.StatOf(path));
  if (watch && expected != Code::kBadArguments) watches_.Add(connection, WatchModel::Kind::kData, path);
  if (expected == Code::kOk && !model_.MayRead(path, ClientOf(session))) expected = Code::kNoAuth;
  if (watch && expected == Code::kOk) watches_.Add(connection, WatchModel::Kind::kChildren, path);
  Expect(Ask(session, OpCode::kGetData, with_watch) == expected);
  if (expected == Code::kOk) Expect(protocol::ReadNodeData(body_).data == model_.DataOf(path));
  Expect(Ask(session, OpCode::kGetChildren2, with_watch) == expected);
  if (expected == Code::kOk) Expect(protocol::ReadChildren(body_).names == model_.ChildrenOf(path));
  Expect((Ask(session, OpCode::kCountDescendants, only_path) == Code::kOk) == (expected == Code::kOk));
  if (expected == Code::kOk) Expect(body_.Int() == static_cast<std::int32_t>(model_.CountBelow(path)));
  Expect(Ask(session, OpCode::kGetEphemerals, only_path) == Code::kOk);
  std::vector<std::string> own = model_.EphemeralsOf(session, path);
  Expect(body_.VectorSize(sizeof(std::int32_t)) == own.size());
  for (const std::string& ephemeral : own) Expect(body_.String() == ephemeral);
}

void CheckedServer::Write(std::int64_t session, const Op& op) {
  if (std::holds_alternative<CheckOp>(op)) return;
  OpCode code = CodeOf(op);
  Code answer = Ask(session, code, [&](JuteWriter& out) { Encode(out, op); });
  MultiResult expected = model_.Apply({op}, ClientOf(session));
  Expect(answer == expected.code());
  CheckEvents();
  if (answer != Code::kOk || code == OpCode::kDelete) return;
  std::string path = code == OpCode::kSetData ? std::get<SetOp>(op).path : expected.results[0].path;
  if (code != OpCode::kSetData) Expect(body_.String() == path);
  Expect(Known(protocol::ReadStat(body_)) == model_.StatOf(path));
}

void CheckedServer::Transact(std::int64_t session, const std::vector<Op>& ops) {
  Code code = Ask(session, OpCode::kMulti, [&](JuteWriter& out) {
    for (const Op& op : ops) {
      WritePartHead(out, static_cast<std::int32_t>(CodeOf(op)), -1);
      Encode(out, op);
    }
    WritePartsEnd(out);
  });
  Expect(code == Code::kOk);
  MultiResult answer = protocol::ReadMulti(body_, ops.size());
  MultiResult expected = model_.Apply(ops, ClientOf(session));
  CheckEvents();
  Expect(answer.failed == expected.failed && answer.code() == expected.code());
  if (!expected.ok()) return;
  for (std::size_t i = 0; i < ops.size(); ++i) Expect(answer.results[i].path == expected.results[i].path);
}

void CheckedServer::Reopen(std::int64_t session) {
  engine_->CloseSession(session);
  model_.CloseSession(session);
  CheckEvents();
  engine_->OpenSession({session, "0123456789abcdef", 1000});
  Connect(session);
  engine_->FreeWatches();
}

void CheckedServer::AddWatch(std::int64_t session, const std::string& path, WatchMode mode) {
  Code code = Ask(session, OpCode::kAddWatch, [&](JuteWriter& out) {
    protocol::WritePathAndInt(out, {"", path}, static_cast<std::int32_t>(mode));
  });
  Expect(code == (TreeModel::IsPath(path) ? Code::kOk : Code::kBadArguments));
  if (code != Code::kOk) return;
  bool is_recursive = mode == WatchMode::kPersistentRecursive;
  watches_.Add(peers_.at(session).connection_id,
               is_recursive ? WatchModel::Kind::kRecursive : WatchModel::Kind::kPersistent, path);
}

void CheckedServer::RemoveWatches(std::int64_t session, const std::string& path, int kind) {
  Code code = Ask(session, OpCode::kRemoveWatches, [&](JuteWriter& out) {
    protocol::WritePathAndInt(out, {"", path}, kind);
  });
  bool is_found = watches_.Remove(peers_.at(session).connection_id, kind, path);
  Expect(code == (is_found ? Code::kOk : Code::kNoWatcher));
}

void CheckedServer::SetAccess(std::int64_t session, const std::string& path, Access access,
                              std::int32_t version) {
  Acl acl = ListOf(access);
  Code code = Ask(session, OpCode::kSetAcl, [&](JuteWriter& out) {
    out.String(path);
    WriteAcl(out, &acl);
    out.Int(version);
  });
  Expect(code == model_.SetAccess(path, access, version, ClientOf(session)));
  if (code == Code::kOk) Expect(Known(protocol::ReadStat(body_)) == model_.StatOf(path));
  CheckEvents();
}

void CheckedServer::DeleteEmptyContainers() {
  while (engine_->HasEmptiedContainers()) engine_->DeleteEmptyContainers();
  model_.DeleteEmptyContainers();
  CheckEvents();
}

void CheckedServer::Restart() {
  Changes changes = engine_->TakeChanges();
  for (const std::string& path : changes.removed) stored_.znodes.erase(path);
  for (DataTree::Snapshot& znode : changes.stored) stored_.znodes[znode.path] = std::move(znode);
  for (std::int64_t session : changes.closed) stored_.sessions.erase(session);
  for (const SessionRecord& session : changes.opened) stored_.sessions[session.id] = session;
  std::vector<SessionRecord> sessions;
  for (const auto& [id, session] : stored_.sessions) sessions.push_back(session);
  std::vector<DataTree::Snapshot> znodes;
  for (const auto& [path, znode] : stored_.znodes) znodes.push_back(znode);
  StartEngine();
  engine_->Restore(std::move(sessions), std::move(znodes), changes.zxid);
  for (std::int64_t session = 1; session <= kSessions; ++session) Connect(session);
}

void CheckedServer::CheckAll() {
  std::vector<std::string> paths = model_.Paths();
  for (const std::string& path : paths) Read(1, path, false);
  Expect(engine_->tree().size() == paths.size());
}

}  // namespace nodepool::zk::server
