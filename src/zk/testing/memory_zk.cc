#include "zk/testing/memory_zk.h"

#include <algorithm>

#include "base/error.h"
#include "base/scope_exit.h"
#include "zk/testing/memory_link.h"
#include "zk/znode.h"

namespace nodepool::testing {

using namespace zk;

namespace {

// Requests and answers beyond this are refused by a real server.
constexpr std::size_t kMaxData = 1'048'575;

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
  if (size > kMaxData)
    return std::make_exception_ptr(Error(Verdict::kInvalid, "the request is larger than ZooKeeper takes"));
  try {
    CheckPaths(ops);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace

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

namespace {

template <class T>
Task<T> Fail(Error error) {
  throw error;
  co_return T();
}

template <>
Task<> Fail<void>(Error error) {
  throw error;
  co_return;
}

template <class T>
Task<T> FailAfter(Task<T> effect, Error error) {
  [[maybe_unused]] T unseen = co_await std::move(effect);
  throw error;
}

Task<> FailAfter(Task<> effect, Error error) {
  co_await std::move(effect);
  throw error;
}

}  // namespace

// Starts the operation within this call, so that the order of the calls is preserved.
template <class Start>
auto FaultyZk::Apply(const char* name, const std::string& path, bool is_write, Start start)
    -> decltype(start()) {
  using Value = typename decltype(start())::value_type;
  Call call{name, path, is_write};
  if (rule_) call.fault = rule_(call);
  calls_.push_back(call);
  switch (call.fault) {
    case Fault::kNone:
      break;
    case Fault::kBefore:
      return Fail<Value>(error_);
    case Fault::kAfter:
      return FailAfter(start(), error_);
  }
  return start();
}

void FaultyZk::FailWhen(std::function<Fault(const Call&)> rule) { rule_ = std::move(rule); }

void FaultyZk::FailNth(std::size_t n, Fault fault) {
  rule_ = [n, fault, count = std::size_t{0}](const Call&) mutable {
    return count++ == n ? fault : Fault::kNone;
  };
}

void FaultyZk::FailRandomly(double probability, Random& random) {
  rule_ = [probability, &random](const Call&) {
    if (random.Between(0, 1) >= probability) return Fault::kNone;
    return random.Below(2) == 0 ? Fault::kBefore : Fault::kAfter;
  };
}

std::size_t FaultyZk::CountWrites() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(calls_, [](const Call& call) { return call.is_write; }));
}

Task<Result<Created>> FaultyZk::Create(std::string path, std::string data, CreateMode mode) {
  return Apply("Create", path, true, [&] { return inner_.Create(path, std::move(data), mode); });
}

Task<Result<NodeData>> FaultyZk::Get(std::string path) {
  return Apply("Get", path, false, [&] { return inner_.Get(path); });
}

Task<Result<Stat>> FaultyZk::Exists(std::string path) {
  return Apply("Exists", path, false, [&] { return inner_.Exists(path); });
}

Task<Result<Stat>> FaultyZk::Set(std::string path, std::string data, std::int32_t version) {
  return Apply("Set", path, true, [&] { return inner_.Set(path, std::move(data), version); });
}

Task<Result<>> FaultyZk::Delete(std::string path, std::int32_t version) {
  return Apply("Delete", path, true, [&] { return inner_.Delete(path, version); });
}

Task<Result<Children>> FaultyZk::GetChildren(std::string path) {
  return Apply("GetChildren", path, false, [&] { return inner_.GetChildren(path); });
}

Task<MultiResult> FaultyZk::Multi(std::vector<Op> ops) {
  std::string path = ops.empty() ? "" : std::visit([](const auto& op) { return op.path; }, ops.front());
  return Apply("Multi", path, true, [&] { return inner_.Multi(std::move(ops)); });
}

Task<> FaultyZk::Sync(std::string path) {
  return Apply("Sync", path, false, [&] { return inner_.Sync(path); });
}

Task<Result<NodeData>> FaultyZk::GetAndWatch(std::string path, Watcher watcher) {
  return Apply("GetAndWatch", path, false, [&] { return inner_.GetAndWatch(path, std::move(watcher)); });
}

Task<Result<Stat>> FaultyZk::ExistsAndWatch(std::string path, Watcher watcher) {
  return Apply("ExistsAndWatch", path, false,
               [&] { return inner_.ExistsAndWatch(path, std::move(watcher)); });
}

Task<Result<Children>> FaultyZk::GetChildrenAndWatch(std::string path, Watcher watcher) {
  return Apply("GetChildrenAndWatch", path, false,
               [&] { return inner_.GetChildrenAndWatch(path, std::move(watcher)); });
}

Task<Subscription> FaultyZk::AddWatch(std::string path, WatchMode mode, Watcher watcher) {
  return Apply("AddWatch", path, false, [&] { return inner_.AddWatch(path, mode, std::move(watcher)); });
}

}  // namespace nodepool::testing
