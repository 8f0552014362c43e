#include "zk/wire/wire_client.h"

#include <fmt/format.h>

#include "base/error.h"
#include "zk/wire/wire_session.h"
#include "zk/znode.h"

namespace nodepool::zk {

using protocol::OpCode;
using Kind = WatchTable::OneShotKind;

struct WireClient::Impl {
  Impl(Loop& loop, Random& random, WireOptions options)
      : session(std::make_shared<WireSession>(loop, random, std::move(options))) {}

  Task<Result<Created>> Create(std::string path, std::string data, CreateMode mode, std::int64_t ttl_ms);
  Task<Result<NodeData>> Get(std::string path, Watcher watcher);
  Task<Result<Stat>> Exists(std::string path, Watcher watcher);
  Task<Result<Children>> GetChildren(std::string path, Watcher watcher);

  protocol::Path OnServer(const std::string& path) const { return {session->chroot(), path}; }

  std::shared_ptr<WireSession> session;
  OwnWrites own_writes;
};

namespace {

void CheckAnyPath(const std::string& path) { CheckPath(path); }

void CheckMode(CreateMode mode, bool has_ttl) {
  if ((protocol::CreateOpCode(mode) == OpCode::kCreateTtl) == has_ttl) return;
  throw Error(Verdict::kInvalid, has_ttl ? "only the TTL modes take a time to live"
                                         : "the TTL modes need a time to live: use CreateTtl");
}

// The path that a create made, without the chroot.
Created Stripped(Created created, const std::string& chroot) {
  auto path = WithoutChroot(created.path, chroot);
  if (!path) throw Error(Verdict::kFail, "malformed answer: a created path outside the chroot");
  created.path = std::string(*path);
  return created;
}

// Completes the result of a create in a transaction: the path without the chroot, and as much of
// the stat as is known where the server sends none.
void FinishCreated(const WireSession& session, const CreateOp& op, OpResult& result) {
  auto path = WithoutChroot(result.path, session.chroot());
  if (!path) throw Error(Verdict::kFail, "malformed answer: a created path outside the chroot");
  result.path = std::string(*path);
  if (result.stat.czxid != 0) return;
  result.stat.czxid = result.stat.mzxid = result.stat.pzxid = session.last_zxid();
  result.stat.data_length = static_cast<std::int32_t>(op.data.size());
  bool is_ephemeral = op.mode == CreateMode::kEphemeral || op.mode == CreateMode::kEphemeralSequential;
  if (is_ephemeral) result.stat.ephemeral_owner = session.session().id;
}

// The data of a write that is under way.
struct SentRecord {
  OwnWrites::Write write;
  std::string data;
};

Task<std::vector<ReadResult>> Checked(Task<std::vector<ReadResult>> task,
                                      std::shared_ptr<const std::vector<ReadOp>> ops) {
  std::vector<ReadResult> results = co_await std::move(task);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const ReadOp& op = (*ops)[i];
    Code code = results[i].code;
    if (code == Code::kOk || code == Code::kNoNode) continue;
    bool is_data = op.kind == ReadOp::Kind::kData;
    throw RefusalOf(code, is_data ? OpCode::kGetData : OpCode::kGetChildren, op.path);
  }
  co_return results;
}

}  // namespace

WireClient::WireClient(Loop& loop, Random& random, WireOptions options)
    : impl_(std::make_unique<Impl>(loop, random, std::move(options))) {
  impl_->session->Start();
}

WireClient::~WireClient() { impl_->session->Abandon(); }

// The replies' decoders run only while the session lives, which owns the replies;
// hence they may refer to it.

Task<Result<Created>> WireClient::Impl::Create(std::string path, std::string data, CreateMode mode,
                                               std::int64_t ttl_ms) {
  auto check = [=](const std::string& p) {
    CheckMode(mode, ttl_ms >= 0);
    CheckPath(p, protocol::IsSequential(mode));
  };
  auto sent = std::make_shared<SentRecord>(own_writes.Begin(path), std::move(data));
  auto encode = [&](JuteWriter& out, const std::string& p) {
    protocol::WriteCreate(out, OnServer(p), sent->data, mode, ttl_ms);
  };
  auto decode = [session = session.get(), sent](Code code, JuteReader& body) -> Result<Created> {
    if (code != Code::kOk) return std::unexpected(code);
    Created created = Stripped(protocol::ReadCreated(body), session->chroot());
    sent->write.Succeed(created.path, {std::move(sent->data), created.stat});
    return created;
  };
  return session->Call<Result<Created>>(protocol::CreateOpCode(mode), std::move(path), check, encode, decode);
}

Task<Result<NodeData>> WireClient::Impl::Get(std::string path, Watcher watcher) {
  bool is_watching = watcher != nullptr;
  auto encode = [&](JuteWriter& out, const std::string& p) {
    protocol::WritePathAndWatch(out, OnServer(p), is_watching);
  };
  auto decode = [session = session.get(), watched = is_watching ? path : std::string(),
                 watcher = std::move(watcher)](Code code, JuteReader& body) mutable -> Result<NodeData> {
    if (code != Code::kOk) return std::unexpected(code);
    NodeData node = protocol::ReadNodeData(body);
    if (watcher) session->watches().AddOneShot(Kind::kData, std::move(watched), std::move(watcher));
    return node;
  };
  return session->Call<Result<NodeData>>(OpCode::kGetData, std::move(path), CheckAnyPath, encode,
                                         std::move(decode));
}

Task<Result<Stat>> WireClient::Impl::Exists(std::string path, Watcher watcher) {
  bool is_watching = watcher != nullptr;
  auto encode = [&](JuteWriter& out, const std::string& p) {
    protocol::WritePathAndWatch(out, OnServer(p), is_watching);
  };
  auto decode = [session = session.get(), watched = is_watching ? path : std::string(),
                 watcher = std::move(watcher)](Code code, JuteReader& body) mutable -> Result<Stat> {
    if (code != Code::kOk && code != Code::kNoNode) return std::unexpected(code);
    bool is_there = code == Code::kOk;
    Stat stat = is_there ? protocol::ReadStat(body) : Stat{};
    // The server keeps the watch on a missing znode in a list of its own.
    Kind kind = is_there ? Kind::kData : Kind::kExist;
    if (watcher) session->watches().AddOneShot(kind, std::move(watched), std::move(watcher));
    if (!is_there) return std::unexpected(code);
    return stat;
  };
  return session->Call<Result<Stat>>(OpCode::kExists, std::move(path), CheckAnyPath, encode,
                                     std::move(decode));
}

Task<Result<Children>> WireClient::Impl::GetChildren(std::string path, Watcher watcher) {
  bool is_watching = watcher != nullptr;
  auto encode = [&](JuteWriter& out, const std::string& p) {
    protocol::WritePathAndWatch(out, OnServer(p), is_watching);
  };
  auto decode = [session = session.get(), watched = is_watching ? path : std::string(),
                 watcher = std::move(watcher)](Code code, JuteReader& body) mutable -> Result<Children> {
    if (code != Code::kOk) return std::unexpected(code);
    Children children = protocol::ReadChildren(body);
    if (watcher) session->watches().AddOneShot(Kind::kChild, std::move(watched), std::move(watcher));
    return children;
  };
  return session->Call<Result<Children>>(OpCode::kGetChildren2, std::move(path), CheckAnyPath, encode,
                                         std::move(decode));
}

Task<Result<Created>> WireClient::Create(std::string path, std::string data, CreateMode mode) {
  return impl_->Create(std::move(path), std::move(data), mode, -1);
}

Task<Result<Created>> WireClient::CreateTtl(std::string path, std::string data, CreateMode mode,
                                            Duration ttl) {
  auto ttl_ms = std::chrono::duration_cast<std::chrono::milliseconds>(ttl).count();
  return impl_->Create(std::move(path), std::move(data), mode, std::max<std::int64_t>(ttl_ms, 0));
}

Task<Result<NodeData>> WireClient::Get(std::string path) { return impl_->Get(std::move(path), nullptr); }

Task<Result<Stat>> WireClient::Exists(std::string path) { return impl_->Exists(std::move(path), nullptr); }

Task<Result<Children>> WireClient::GetChildren(std::string path) {
  return impl_->GetChildren(std::move(path), nullptr);
}

Task<Result<NodeData>> WireClient::GetAndWatch(std::string path, Watcher watcher) {
  return impl_->Get(std::move(path), std::move(watcher));
}

Task<Result<Stat>> WireClient::ExistsAndWatch(std::string path, Watcher watcher) {
  return impl_->Exists(std::move(path), std::move(watcher));
}

Task<Result<Children>> WireClient::GetChildrenAndWatch(std::string path, Watcher watcher) {
  return impl_->GetChildren(std::move(path), std::move(watcher));
}

Task<Result<Stat>> WireClient::Set(std::string path, std::string data, std::int32_t version) {
  auto sent = std::make_shared<SentRecord>(impl_->own_writes.Begin(path), std::move(data));
  auto encode = [&](JuteWriter& out, const std::string& p) {
    protocol::WriteSet(out, impl_->OnServer(p), sent->data, version);
  };
  auto decode = [path, sent](Code code, JuteReader& body) -> Result<Stat> {
    if (code != Code::kOk) return std::unexpected(code);
    Stat stat = protocol::ReadStat(body);
    sent->write.Succeed(path, {std::move(sent->data), stat});
    return stat;
  };
  return impl_->session->Call<Result<Stat>>(OpCode::kSetData, std::move(path), CheckAnyPath, encode, decode);
}

Task<Result<>> WireClient::Delete(std::string path, std::int32_t version) {
  auto encode = [&](JuteWriter& out, const std::string& p) {
    protocol::WritePathAndInt(out, impl_->OnServer(p), version);
  };
  auto decode = [](Code code, JuteReader&) -> Result<> {
    if (code != Code::kOk) return std::unexpected(code);
    return {};
  };
  return impl_->session->Call<Result<>>(OpCode::kDelete, std::move(path), CheckAnyPath, encode, decode);
}

Task<MultiResult> WireClient::Multi(std::vector<Op> ops) {
  auto parts = std::make_shared<const std::vector<Op>>(std::move(ops));
  auto writes = std::make_shared<OwnWrites::Sets>(impl_->own_writes.Begin(*parts));
  auto check = [&](const std::string&) { CheckPaths(*parts); };
  auto encode = [&](JuteWriter& out, const std::string&) {
    protocol::WriteMulti(out, impl_->session->chroot(), *parts);
  };
  auto decode = [session = impl_->session.get(), parts, writes](Code, JuteReader& body) {
    MultiResult answer = protocol::ReadMulti(body, parts->size());
    for (std::size_t i = 0; answer.ok() && i < parts->size(); ++i) {
      const auto* create = std::get_if<CreateOp>(&(*parts)[i]);
      if (create) FinishCreated(*session, *create, answer.results[i]);
    }
    writes->End(*parts, answer);
    return answer;
  };
  std::string what = fmt::format("of {} operations", parts->size());
  return impl_->session->Call<MultiResult>(OpCode::kMulti, std::move(what), check, encode, decode);
}

Task<std::vector<ReadResult>> WireClient::ReadMany(std::vector<ReadOp> ops) {
  auto parts = std::make_shared<const std::vector<ReadOp>>(std::move(ops));
  auto check = [&](const std::string&) {
    for (const ReadOp& op : *parts) CheckPath(op.path);
  };
  auto encode = [&](JuteWriter& out, const std::string&) {
    protocol::WriteReads(out, impl_->session->chroot(), *parts);
  };
  auto decode = [parts](Code, JuteReader& body) { return protocol::ReadReads(body, *parts); };
  std::string what = parts->empty() ? "" : parts->front().path + " and others";
  Task<std::vector<ReadResult>> results = impl_->session->Call<std::vector<ReadResult>>(
      OpCode::kMultiRead, std::move(what), check, encode, decode);
  return Checked(std::move(results), std::move(parts));
}

Task<> WireClient::Sync(std::string path) {
  auto encode = [&](JuteWriter& out, const std::string& p) { protocol::WritePath(out, impl_->OnServer(p)); };
  auto decode = [](Code, JuteReader&) { return std::monostate(); };
  Task<std::monostate> done =
      impl_->session->Call<std::monostate>(OpCode::kSync, std::move(path), CheckAnyPath, encode, decode);
  return [](Task<std::monostate> task) -> Task<> { co_await std::move(task); }(std::move(done));
}

Task<Subscription> WireClient::AddWatch(std::string path, WatchMode mode, Watcher watcher) {
  auto encode = [&](JuteWriter& out, const std::string& p) {
    protocol::WritePathAndInt(out, impl_->OnServer(p), static_cast<std::int32_t>(mode));
  };
  auto decode = [session = impl_->session.get(), mode, watched = path, watcher = std::move(watcher)](
                    Code, JuteReader&) mutable {
    return session->watches().AddLasting(mode, std::move(watched), std::move(watcher));
  };
  return impl_->session->Call<Subscription>(OpCode::kAddWatch, std::move(path), CheckAnyPath, encode,
                                            std::move(decode));
}

Subscription WireClient::OnSession(std::function<void(SessionState)> listener) {
  return impl_->session->OnSession(std::move(listener));
}

SessionState WireClient::state() const { return impl_->session->state(); }

Session WireClient::session() const { return impl_->session->session(); }

const OwnWrites& WireClient::own_writes() const { return impl_->own_writes; }

Task<> WireClient::Close() { return impl_->session->Close(); }

void WireClient::SetServers(std::vector<HostPort> servers) { impl_->session->SetServers(std::move(servers)); }

WireClient::Counters WireClient::counters() const { return impl_->session->counters(); }

}  // namespace nodepool::zk
