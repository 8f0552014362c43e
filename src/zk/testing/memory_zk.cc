#include "zk/testing/memory_zk.h"

#include <boost/asio/post.hpp>
#include <deque>
#include <list>
#include <map>

#include "async/event.h"
#include "base/error.h"
#include "base/scope_exit.h"
#include "zk/tree/server_watches.h"
#include "zk/wire/wire_paths.h"
#include "zk/wire/wire_watches.h"

namespace nodepool::testing {

using namespace zk;

namespace {

using Action = std::move_only_function<void()>;
using OnError = std::move_only_function<void(std::exception_ptr)>;

// Requests and answers beyond this are refused by a real server.
constexpr std::size_t kMaxData = 1'048'575;

std::exception_ptr MakeError(Verdict verdict, std::string message) {
  return std::make_exception_ptr(Error(verdict, std::move(message)));
}

std::exception_ptr SessionGone() { return MakeError(Verdict::kLostSession, "the ZooKeeper session is over"); }

// An operation on its way to the servers.
struct Call {
  bool is_write;
  std::move_only_function<Action()> execute;  // at the servers; returns what the client does with the answer
  OnError fail;
};

// Something on its way to the client: an answer, or a watch event (no `fail`).
struct Message {
  Action deliver;
  OnError fail;
};

bool IsOrdinary(Code code) {
  switch (code) {
    case Code::kNoNode:
    case Code::kNodeExists:
    case Code::kBadVersion:
    case Code::kNotEmpty:
    case Code::kNoChildrenForEphemerals:
    case Code::kNoWatcher:
      return true;
    default:
      return false;
  }
}

// Passes ordinary answers on and throws all others, as a client does.
template <class T>
Result<T> OrThrow(Result<T> result) {
  if (result || IsOrdinary(result.error())) return result;
  Verdict verdict = result.error() == Code::kSessionExpired ? Verdict::kLostSession : Verdict::kFail;
  throw Error(verdict, "ZooKeeper answers: " + std::string(ToString(result.error())));
}

template <class T>
Task<T> TakeFrom(std::shared_ptr<OneShot<T>> answer) {
  T value = co_await answer->Take();
  co_return std::move(value);
}

template <class T>
Task<T> Refused(std::exception_ptr error) {
  std::rethrow_exception(error);
  co_return T();
}

std::size_t SizeOf(const Op& op) {
  if (const auto* create = std::get_if<CreateOp>(&op)) return create->path.size() + create->data.size();
  if (const auto* set = std::get_if<SetOp>(&op)) return set->path.size() + set->data.size();
  return 0;
}

// The fault in a caller's operations, if there is one.
std::exception_ptr FaultIn(const std::vector<Op>& ops) {
  std::size_t size = 0;
  for (const Op& op : ops) size += SizeOf(op);
  if (size > kMaxData) return MakeError(Verdict::kInvalid, "the request is larger than ZooKeeper takes");
  try {
    CheckPaths(ops);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace

// The state that all clients share.
struct MemoryZk::Ensemble {
  Ensemble(Loop& loop, MemoryZkOptions options) : loop(loop), options(options) {
    tree.OnChange([this](const DataTree::Change& change) {
      if (on_write) on_write(writer, change.event);
      Announce(change.event);
    });
  }
  ~Ensemble() {
    for (auto& [session, timer] : expiries) loop.clock().CancelTimer(timer);
  }

  void Announce(const WatchEvent& change);

  // Does `action` after `delay`, in the order of the calls for equal delays.
  void After(Duration delay, Action action) {
    if (options.jitter > Duration(0)) {
      delay += Duration(options.random->Below(static_cast<std::uint64_t>(options.jitter.count())));
    }
    if (delay.count() == 0) {
      boost::asio::post(loop.context(), std::move(action));
    } else {
      loop.clock().CallAt(loop.SteadyNow() + delay, std::move(action));
    }
  }

  void ExpireLater(std::int64_t session) {
    expiries[session] = loop.clock().CallAt(loop.SteadyNow() + options.session_timeout, [this, session] {
      expiries.erase(session);
      tree.CloseSession(session);
    });
  }
  void KeepAlive(std::int64_t session) {
    auto timer = expiries.find(session);
    if (timer == expiries.end()) return;
    loop.clock().CancelTimer(timer->second);
    expiries.erase(timer);
  }

  Loop& loop;
  MemoryZkOptions options;
  DataTree tree;
  ServerWatches watches;
  std::map<ServerWatches::ConnectionId, Link*> connections;
  std::map<const Client*, std::shared_ptr<Link>> clients;
  std::map<std::int64_t, Clock::TimerId> expiries;
  WriteListener on_write;
  std::int64_t writer = 0;  // the session whose transaction is being carried out
  ServerWatches::ConnectionId last_connection = 0;
  std::int64_t last_session = 0x1000;
};

// A client's end of a connection. Shared with the actions that are in flight, which do nothing once
// the client is destroyed.
class MemoryZk::Link : public std::enable_shared_from_this<Link> {
 public:
  explicit Link(Ensemble& ensemble) : ensemble_(ensemble) {}
  ~Link() {
    Leave();
    FailAll(SessionGone(), true);
  }

  // `run` works on the tree at the servers, `finish` converts its outcome into the caller's answer
  // at the client.
  template <class T, class Run, class Finish>
  Task<T> Submit(bool is_write, Run run, Finish finish) {
    auto answer = std::make_shared<OneShot<T>>();
    Call call;
    call.is_write = is_write;
    call.execute = [answer, run = std::move(run), finish = std::move(finish)]() mutable -> Action {
      try {
        return [answer, outcome = run(), finish = std::move(finish)]() mutable {
          answer->Set(finish(std::move(outcome)));
        };
      } catch (...) {
        return [answer, error = std::current_exception()] { answer->Fail(error); };
      }
    };
    call.fail = [answer](std::exception_ptr error) { answer->Fail(error); };
    Send(std::move(call));
    return TakeFrom(std::move(answer));
  }

  void Connect();
  void Disconnect(UnderWay under_way);
  void Reconnect();
  void Expire();
  void LoseWatches();
  void Close();
  void Receive(const WatchEvent& event);

  Subscription Listen(std::function<void(SessionState)> listener);

  Ensemble& ensemble() { return ensemble_; }
  WatchTable& table() { return *table_; }
  ServerWatches::ConnectionId connection() const { return connection_; }
  SessionState state() const { return state_; }
  Session session() const { return session_; }
  Counters counters() const { return counters_; }

 private:
  bool IsConnected() const { return state_ == SessionState::kConnected; }
  Duration HalfWay() const { return ensemble_.options.latency / 2; }

  void Send(Call call);
  void ExecuteNext();
  void Post(Message message);
  void DeliverNext();
  void FailAll(std::exception_ptr error, bool also_unsent);
  void Establish();
  void StartSession();
  void Leave();
  void Lose();
  void Enter(SessionState state);
  // An action for later that does nothing once this connection has ended.
  Action Guarded(void (Link::*method)());

  Ensemble& ensemble_;
  SessionState state_ = SessionState::kConnecting;
  Session session_;
  bool is_cut_ = false;
  ServerWatches::ConnectionId connection_ = 0;  // 0: none
  std::uint64_t attempt_ = 0;                   // counts connections and attempts
  std::int64_t seen_zxid_ = 0;
  std::deque<Call> unsent_;
  std::deque<Call> sent_;
  std::deque<Message> inbox_;
  std::shared_ptr<WatchTable> table_ = std::make_shared<WatchTable>();
  std::list<std::shared_ptr<std::function<void(SessionState)>>> listeners_;
  Counters counters_;
};

void MemoryZk::Ensemble::Announce(const WatchEvent& change) {
  for (const auto& [connection_id, event] : watches.Trigger(change)) {
    auto link = connections.find(connection_id);
    if (link != connections.end()) link->second->Receive(event);
  }
}

Action MemoryZk::Link::Guarded(void (Link::*method)()) {
  return [weak = weak_from_this(), attempt = attempt_, method] {
    auto self = weak.lock();
    if (self && self->attempt_ == attempt) (self.get()->*method)();
  };
}

void MemoryZk::Link::Send(Call call) {
  if (state_ == SessionState::kLost || state_ == SessionState::kClosed) return call.fail(SessionGone());
  if (!IsConnected()) {
    unsent_.push_back(std::move(call));
    return;
  }
  ++(call.is_write ? counters_.writes : counters_.reads);
  sent_.push_back(std::move(call));
  ensemble_.After(HalfWay(), Guarded(&Link::ExecuteNext));
}

void MemoryZk::Link::ExecuteNext() {
  if (sent_.empty()) return;
  Call call = std::move(sent_.front());
  sent_.pop_front();
  Message answer;
  if (ensemble_.tree.IsOpen(session_.id)) {
    answer.deliver = call.execute();
  } else {
    auto fail = std::make_shared<OnError>(std::move(call.fail));
    answer.deliver = [fail] { (*fail)(SessionGone()); };
    call.fail = [fail](std::exception_ptr error) { (*fail)(error); };
  }
  answer.deliver = [this, zxid = ensemble_.tree.last_zxid(), deliver = std::move(answer.deliver)]() mutable {
    seen_zxid_ = zxid;
    deliver();
  };
  answer.fail = std::move(call.fail);
  Post(std::move(answer));
}

void MemoryZk::Link::Receive(const WatchEvent& event) {
  Message message;
  message.deliver = [this, event] { table_->Dispatch(event); };
  Post(std::move(message));
}

void MemoryZk::Link::Post(Message message) {
  inbox_.push_back(std::move(message));
  ensemble_.After(HalfWay(), Guarded(&Link::DeliverNext));
}

void MemoryZk::Link::DeliverNext() {
  if (inbox_.empty()) return;
  Message message = std::move(inbox_.front());
  inbox_.pop_front();
  message.deliver();
}

void MemoryZk::Link::FailAll(std::exception_ptr error, bool also_unsent) {
  for (Message& message : std::exchange(inbox_, {})) {
    if (message.fail) message.fail(error);
  }
  for (Call& call : std::exchange(sent_, {})) call.fail(error);
  if (!also_unsent) return;
  for (Call& call : std::exchange(unsent_, {})) call.fail(error);
}

void MemoryZk::Link::Connect() {
  ++attempt_;
  ensemble_.After(ensemble_.options.latency, Guarded(&Link::Establish));
}

void MemoryZk::Link::Establish() {
  if (session_.id != 0 && !ensemble_.tree.IsOpen(session_.id)) return Lose();
  if (session_.id == 0) StartSession();
  ensemble_.KeepAlive(session_.id);
  connection_ = ++ensemble_.last_connection;
  ensemble_.connections[connection_] = this;
  auto missed = ensemble_.watches.Restore(ensemble_.tree, connection_, seen_zxid_, table_->Paths());
  state_ = SessionState::kConnected;
  for (const WatchEvent& event : missed) Receive(event);
  for (Call& call : std::exchange(unsent_, {})) Send(std::move(call));
  Enter(SessionState::kConnected);
}

void MemoryZk::Link::StartSession() {
  session_.id = ++ensemble_.last_session;
  ++session_.generation;
  ensemble_.tree.OpenSession(session_.id);
}

// Ends the connection at the servers' side; the session continues until its time-out.
void MemoryZk::Link::Leave() {
  ++attempt_;
  if (connection_ == 0) return;
  ensemble_.watches.RemoveAll(connection_);
  ensemble_.connections.erase(connection_);
  connection_ = 0;
  if (ensemble_.tree.IsOpen(session_.id)) ensemble_.ExpireLater(session_.id);
}

void MemoryZk::Link::Disconnect(UnderWay under_way) {
  if (is_cut_ || state_ == SessionState::kClosed) return;
  is_cut_ = true;
  if (under_way == UnderWay::kDone) {
    while (!sent_.empty()) ExecuteNext();
  }
  Leave();
  if (!IsConnected()) return;
  FailAll(MakeError(Verdict::kRetry, "the connection to ZooKeeper was lost"), false);
  Enter(SessionState::kSuspended);
}

void MemoryZk::Link::Reconnect() {
  if (!is_cut_ || state_ == SessionState::kClosed) return;
  is_cut_ = false;
  Connect();
}

void MemoryZk::Link::Expire() {
  ensemble_.KeepAlive(session_.id);
  ensemble_.tree.CloseSession(session_.id);
  if (IsConnected()) ensemble_.After(HalfWay(), Guarded(&Link::Lose));
}

void MemoryZk::Link::LoseWatches() {
  protocol::WatchPaths paths = table_->Paths();
  for (const auto* list : {&paths.data, &paths.exist, &paths.child, &paths.persistent, &paths.recursive}) {
    for (const std::string& path : *list) ensemble_.watches.Remove(path, connection_, true, true);
  }
}

void MemoryZk::Link::Lose() {
  Leave();
  state_ = SessionState::kLost;
  FailAll(SessionGone(), true);
  table_->DropOneShots();
  Enter(SessionState::kLost);
  if (state_ != SessionState::kLost) return;  // a listener closed the client
  session_.id = 0;
  Enter(SessionState::kConnecting);
  Connect();
}

void MemoryZk::Link::Close() {
  if (state_ == SessionState::kClosed) return;
  state_ = SessionState::kClosed;
  if (connection_ != 0) ensemble_.tree.CloseSession(session_.id);
  Leave();
  FailAll(SessionGone(), true);
  table_->DropOneShots();
  Enter(SessionState::kClosed);
}

void MemoryZk::Link::Enter(SessionState state) {
  state_ = state;
  auto listeners = listeners_;
  for (const auto& listener : listeners) {
    if (*listener && state_ == state) (*listener)(state);
  }
}

Subscription MemoryZk::Link::Listen(std::function<void(SessionState)> listener) {
  auto entry = std::make_shared<std::function<void(SessionState)>>(std::move(listener));
  listeners_.push_back(entry);
  return Subscription([weak = weak_from_this(), entry] {
    if (auto self = weak.lock()) self->listeners_.remove(entry);
    *entry = nullptr;
  });
}

// The interface; the link implements everything behind it.
class MemoryZk::ClientOfTree : public Client {
 public:
  explicit ClientOfTree(std::shared_ptr<Link> link) : link_(std::move(link)) {}
  ~ClientOfTree() override { link_->ensemble().clients.erase(this); }

  Task<Result<Created>> Create(std::string path, std::string data, CreateMode mode) override {
    CreateOp op{std::move(path), std::move(data), mode};
    auto create = [op](DataTree& tree, std::int64_t session, WallTime now) {
      return OrThrow(tree.Create(op, session, now));
    };
    auto report = [op, write = own_writes_.Begin(op.path)](const Result<Created>& created) mutable {
      if (created) write.Succeed(created->path, {op.data, created->stat});
    };
    return Write<Result<Created>>(op, std::move(create), std::move(report));
  }
  Task<Result<Stat>> Set(std::string path, std::string data, std::int32_t version) override {
    SetOp op{std::move(path), std::move(data), version};
    auto set = [op](DataTree& tree, std::int64_t session, WallTime now) {
      return OrThrow(tree.Set(op, session, now));
    };
    auto report = [op, write = own_writes_.Begin(op.path)](const Result<Stat>& stat) mutable {
      if (stat) write.Succeed(op.path, {op.data, *stat});
    };
    return Write<Result<Stat>>(op, std::move(set), std::move(report));
  }
  Task<Result<>> Delete(std::string path, std::int32_t version) override {
    DeleteOp op{std::move(path), version};
    auto remove = [op](DataTree& tree, std::int64_t session, WallTime) {
      return OrThrow(tree.Delete(op, session));
    };
    return Write<Result<>>(op, std::move(remove), [](const Result<>&) {});
  }
  Task<MultiResult> Multi(std::vector<Op> ops) override {
    auto carry_out = [ops](DataTree& tree, std::int64_t session, WallTime now) {
      return tree.Multi(ops, session, now);
    };
    auto report = [ops, sets = own_writes_.Begin(ops)](const MultiResult& answer) mutable {
      sets.End(ops, answer);
    };
    return Write<MultiResult>(ops, std::move(carry_out), std::move(report));
  }

  Task<Result<NodeData>> Get(std::string path) override {
    return Read<NodeData>(path, [path](DataTree& tree) { return tree.Get(path); });
  }
  Task<Result<Stat>> Exists(std::string path) override {
    return Read<Stat>(path, [path](DataTree& tree) { return tree.Exists(path); });
  }
  Task<Result<Children>> GetChildren(std::string path) override {
    return Read<Children>(path, [path](DataTree& tree) { return tree.GetChildren(path); });
  }
  Task<> Sync(std::string path) override {
    Result<Stat> unused = co_await Exists(std::move(path));
    (void)unused;
  }

  Task<Result<NodeData>> GetAndWatch(std::string path, Watcher watcher) override {
    auto kind = [](const Result<NodeData>&) { return WatchTable::OneShotKind::kData; };
    return ReadAndWatch<NodeData>(path, std::move(watcher), kind,
                                  [path](DataTree& tree) { return tree.Get(path); });
  }
  Task<Result<Stat>> ExistsAndWatch(std::string path, Watcher watcher) override {
    auto kind = [](const Result<Stat>& stat) {
      return stat ? WatchTable::OneShotKind::kData : WatchTable::OneShotKind::kExist;
    };
    return ReadAndWatch<Stat>(path, std::move(watcher), kind,
                              [path](DataTree& tree) { return tree.Exists(path); });
  }
  Task<Result<Children>> GetChildrenAndWatch(std::string path, Watcher watcher) override {
    auto kind = [](const Result<Children>&) { return WatchTable::OneShotKind::kChild; };
    return ReadAndWatch<Children>(path, std::move(watcher), kind,
                                  [path](DataTree& tree) { return tree.GetChildren(path); });
  }

  Task<Subscription> AddWatch(std::string path, WatchMode mode, Watcher watcher) override {
    if (auto fault = FaultIn({CheckOp{path}})) return Refused<Subscription>(fault);
    auto at_server = [link = link_.get(), path, mode] {
      link->ensemble().watches.AddStaying(path, mode, link->connection());
      return true;
    };
    auto at_client = [link = link_.get(), path, mode, watcher = std::move(watcher)](bool) mutable {
      return link->table().AddLasting(mode, path, std::move(watcher));
    };
    return link_->Submit<Subscription>(false, std::move(at_server), std::move(at_client));
  }

  Subscription OnSession(std::function<void(SessionState)> listener) override {
    return link_->Listen(std::move(listener));
  }
  SessionState state() const override { return link_->state(); }
  Session session() const override { return link_->session(); }
  const OwnWrites& own_writes() const override { return own_writes_; }
  Task<> Close() override {
    link_->Close();
    co_return;
  }

 private:
  template <class T, class Run, class Report>
  Task<T> Write(const Op& op, Run run, Report report) {
    return Write<T>(std::vector<Op>{op}, std::move(run), std::move(report));
  }
  // `report` notifies the followers of own writes of the answer.
  template <class T, class Run, class Report>
  Task<T> Write(const std::vector<Op>& ops, Run run, Report report) {
    if (auto fault = FaultIn(ops)) return Refused<T>(fault);
    auto at_server = [link = link_.get(), run = std::move(run)] {
      Ensemble& ensemble = link->ensemble();
      ScopeExit written([&ensemble] { ensemble.writer = 0; });
      ensemble.writer = link->session().id;
      return run(ensemble.tree, ensemble.writer, ensemble.loop.Now());
    };
    auto at_client = [report = std::move(report)](T outcome) mutable {
      report(outcome);
      return outcome;
    };
    return link_->Submit<T>(true, std::move(at_server), std::move(at_client));
  }

  template <class T, class Run>
  Task<Result<T>> Read(const std::string& path, Run run) {
    if (auto fault = FaultIn({CheckOp{path}})) return Refused<Result<T>>(fault);
    auto at_server = [link = link_.get(), run = std::move(run)] {
      return OrThrow(run(link->ensemble().tree));
    };
    return link_->Submit<Result<T>>(false, std::move(at_server), [](Result<T> outcome) { return outcome; });
  }

  // A missing znode is watched only by the kind kExist.
  template <class T, class Kind, class Run>
  Task<Result<T>> ReadAndWatch(std::string path, Watcher watcher, Kind kind, Run run) {
    if (auto fault = FaultIn({CheckOp{path}})) return Refused<Result<T>>(fault);
    auto is_watched = [kind](const Result<T>& outcome) {
      return outcome || kind(outcome) == WatchTable::OneShotKind::kExist;
    };
    auto at_server = [link = link_.get(), path, kind, is_watched, run = std::move(run)] {
      Result<T> outcome = OrThrow(run(link->ensemble().tree));
      if (!is_watched(outcome)) return outcome;
      ServerWatches& watches = link->ensemble().watches;
      if (kind(outcome) == WatchTable::OneShotKind::kChild) {
        watches.AddChildren(path, link->connection());
      } else {
        watches.AddData(path, link->connection());
      }
      return outcome;
    };
    auto at_client = [link = link_.get(), path, kind, is_watched,
                      watcher = std::move(watcher)](Result<T> outcome) mutable {
      if (is_watched(outcome)) link->table().AddOneShot(kind(outcome), path, std::move(watcher));
      return outcome;
    };
    return link_->Submit<Result<T>>(false, std::move(at_server), std::move(at_client));
  }

  std::shared_ptr<Link> link_;
  OwnWrites own_writes_;
};

MemoryZk::MemoryZk(Loop& loop, MemoryZkOptions options)
    : ensemble_(std::make_shared<Ensemble>(loop, options)) {}

MemoryZk::~MemoryZk() = default;

std::unique_ptr<Client> MemoryZk::Connect() {
  auto link = std::make_shared<Link>(*ensemble_);
  auto client = std::make_unique<ClientOfTree>(link);
  ensemble_->clients[client.get()] = link;
  link->Connect();
  return client;
}

void MemoryZk::Disconnect(Client& client, UnderWay under_way) {
  ensemble_->clients.at(&client)->Disconnect(under_way);
}
void MemoryZk::Reconnect(Client& client) { ensemble_->clients.at(&client)->Reconnect(); }
void MemoryZk::ExpireSession(Client& client) { ensemble_->clients.at(&client)->Expire(); }
void MemoryZk::LoseWatches(Client& client) { ensemble_->clients.at(&client)->LoseWatches(); }
MemoryZk::Counters MemoryZk::counters(const Client& client) const {
  return ensemble_->clients.at(&client)->counters();
}
void MemoryZk::SetLatency(Duration latency) { ensemble_->options.latency = latency; }
void MemoryZk::OnWrite(WriteListener listener) { ensemble_->on_write = std::move(listener); }
DataTree& MemoryZk::tree() { return ensemble_->tree; }

}  // namespace nodepool::testing
