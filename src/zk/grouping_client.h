#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/task.h"
#include "zk/client.h"

namespace nodepool::zk {

// Writes that are called while others are under way go together when one of those has ended: as one
// transaction, which costs the servers little more than one write (coordination.md 2.9). A write that finds
// few under way is sent at once, as without this class, so a lone writer pays nothing and a crowd gains.
//
// Each write keeps its own outcome. A transaction that the servers refuse is taken apart: the write at fault
// gets its answer, the others are sent again, at last each alone. An answer that is lost is lost for all in
// the transaction, as for separate writes under way: Error(kRetry). A write that waits is dropped when its
// caller is cancelled, and ends with Error(kLostSession) when the session in which it was called is over.
//
// Deviations from Client: a read may be sent before a write that was called earlier and is not answered yet;
// so may a write, where the earlier one was in a transaction that was refused. Whoever awaits one call before
// the next sees no difference. Create is sent at once, since its answer shows the whole new znode, which that
// of a transaction does not before ZooKeeper 3.9; only the contenders of locks (ephemeral, sequential) wait,
// too, as of these only the name counts.
class GroupingClient : public Client {
 public:
  struct Bounds {
    // Transactions under way; from then on writes wait.
    int at_once = 4;
    // Of a transaction; a larger write goes alone.
    std::size_t ops = 200;
    std::size_t bytes = 256 * 1024;  // a server accepts 1 MiB
  };

  // `inner` outlives this.
  explicit GroupingClient(Client& inner, Bounds bounds);
  explicit GroupingClient(Client& inner) : GroupingClient(inner, Bounds()) {}

  Task<Result<Stat>> Set(std::string path, std::string data, std::int32_t version) override;
  Task<Result<>> Delete(std::string path, std::int32_t version) override;
  Task<MultiResult> Multi(std::vector<Op> ops) override;

  Task<Result<Created>> Create(std::string path, std::string data, CreateMode mode) override;
  Task<Result<NodeData>> Get(std::string path) override { return inner_.Get(std::move(path)); }
  Task<Result<Stat>> Exists(std::string path) override { return inner_.Exists(std::move(path)); }
  Task<Result<Children>> GetChildren(std::string path) override {
    return inner_.GetChildren(std::move(path));
  }
  Task<std::vector<ReadResult>> ReadMany(std::vector<ReadOp> ops) override {
    return inner_.ReadMany(std::move(ops));
  }
  Task<> Sync(std::string path) override { return inner_.Sync(std::move(path)); }
  Task<Result<NodeData>> GetAndWatch(std::string path, Watcher watcher) override {
    return inner_.GetAndWatch(std::move(path), std::move(watcher));
  }
  Task<Result<Stat>> ExistsAndWatch(std::string path, Watcher watcher) override {
    return inner_.ExistsAndWatch(std::move(path), std::move(watcher));
  }
  Task<Result<Children>> GetChildrenAndWatch(std::string path, Watcher watcher) override {
    return inner_.GetChildrenAndWatch(std::move(path), std::move(watcher));
  }
  Task<Subscription> AddWatch(std::string path, WatchMode mode, Watcher watcher) override {
    return inner_.AddWatch(std::move(path), mode, std::move(watcher));
  }
  Subscription OnSession(std::function<void(SessionState)> listener) override {
    return inner_.OnSession(std::move(listener));
  }
  SessionState state() const override { return inner_.state(); }
  Session session() const override { return inner_.session(); }
  const OwnWrites& own_writes() const override { return inner_.own_writes(); }
  Task<> Close() override { return inner_.Close(); }

 private:
  struct Write;
  using Group = std::vector<std::shared_ptr<Write>>;

  Task<MultiResult> Wait(std::vector<Op> ops);
  Task<> Send(Write& first);
  void WriteEnded();
  void StartGroups();
  bool MaySend() const { return under_way_ < bounds_.at_once && waiting_.empty(); }
  Group TakeGroup();
  bool IsOver(const Write& write) const;

  Client& inner_;
  Bounds bounds_;
  int under_way_ = 0;                           // transactions, and turns that were given
  std::deque<std::shared_ptr<Write>> waiting_;  // in the order of the calls
};

}  // namespace nodepool::zk
