#include "checked_server.h"

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
  if (const auto* create = std::get_if<CreateOp>(&op)) return protocol::CreateOpCode(create->mode);
  return std::holds_alternative<SetOp>(op) ? OpCode::kSetData : OpCode::kDelete;
}

void Encode(JuteWriter& out, const Op& op) {
  if (const auto* create = std::get_if<CreateOp>(&op)) {
    protocol::WriteCreate(out, {"", create->path}, create->data, create->mode);
  } else if (const auto* set = std::get_if<SetOp>(&op)) {
    protocol::WriteSet(out, {"", set->path}, set->data, set->version);
  } else {
    const auto& remove = std::get<DeleteOp>(op);
    protocol::WritePathAndInt(out, {"", remove.path}, remove.version);
  }
}

}  // namespace

CheckedServer::CheckedServer() : engine_(std::make_unique<Engine>(Engine::Limits{})) {
  for (std::int64_t session = 1; session <= kSessions; ++session) {
    engine_->OpenSession({session, "0123456789abcdef", 1000});
  }
}

template <class WriteBody>
Code CheckedServer::Ask(std::int64_t session, OpCode op, WriteBody write_body) {
  std::string frame;
  JuteWriter writer(frame);
  protocol::WriteHeader(writer, ++xid_, op);
  write_body(writer);
  Engine::Peer peer{static_cast<ServerWatches::ConnectionId>(session), session, {}};
  answer_.clear();
  engine_->Execute(ReadRequest(frame), peer, WallTime(), answer_);
  body_ = JuteReader(answer_);
  Expect(body_.Int() == static_cast<std::int32_t>(body_.remaining()));
  protocol::ReplyHeader header = protocol::ReadReplyHeader(body_);
  Expect(header.xid == xid_);
  return header.code;
}

void CheckedServer::Read(std::int64_t session, const std::string& path) {
  auto with_watch = [&](JuteWriter& out) { protocol::WritePathAndWatch(out, {"", path}, true); };
  auto only_path = [&](JuteWriter& out) { protocol::WritePath(out, {"", path}); };
  Code missing = TreeModel::IsPath(path) ? Code::kNoNode : Code::kBadArguments;
  Code expected = model_.Has(path) ? Code::kOk : missing;
  Expect(Ask(session, OpCode::kExists, with_watch) == expected);
  if (expected == Code::kOk) Expect(Known(protocol::ReadStat(body_)) == model_.StatOf(path));
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
  MultiResult expected = model_.Apply({op}, session);
  Expect(answer == expected.code());
  if (answer != Code::kOk || code == OpCode::kDelete) return;
  std::string path = code == OpCode::kSetData ? std::get<SetOp>(op).path : expected.results[0].path;
  if (code != OpCode::kSetData) Expect(body_.String() == path);
  Expect(Known(protocol::ReadStat(body_)) == model_.StatOf(path));
}

void CheckedServer::Transact(std::int64_t session, const std::vector<Op>& ops) {
  Code code = Ask(session, OpCode::kMulti, [&](JuteWriter& out) { protocol::WriteMulti(out, "", ops); });
  Expect(code == Code::kOk);
  MultiResult answer = protocol::ReadMulti(body_, ops.size());
  MultiResult expected = model_.Apply(ops, session);
  Expect(answer.failed == expected.failed && answer.code() == expected.code());
  if (!expected.ok()) return;
  for (std::size_t i = 0; i < ops.size(); ++i) Expect(answer.results[i].path == expected.results[i].path);
}

void CheckedServer::Reopen(std::int64_t session) {
  engine_->CloseSession(session);
  model_.CloseSession(session);
  engine_->OpenSession({session, "0123456789abcdef", 1000});
}

void CheckedServer::DeleteEmptyContainers() {
  while (engine_->HasEmptiedContainers()) engine_->DeleteEmptyContainers();
  model_.DeleteEmptyContainers();
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
  engine_ = std::make_unique<Engine>(Engine::Limits{});
  engine_->Restore(std::move(sessions), std::move(znodes), changes.zxid);
}

void CheckedServer::CheckAll() {
  std::vector<std::string> paths = model_.Paths();
  for (const std::string& path : paths) Read(1, path);
  Expect(engine_->tree().size() == paths.size());
}

}  // namespace nodepool::zk::server
