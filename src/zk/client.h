#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "async/task.h"
#include "base/subscription.h"
#include "base/text.h"
#include "zk/znode.h"

namespace nodepool::zk {

// The writes of one client that are under way. ZooKeeper announces a change before it answers the write that
// made it, so whoever hears of a change of a znode that the same client is writing need not read it: the
// answer will show the znode as it is, with all changes that were announced before.
//
// A write is known by its target: the path of the znode, or of a sequential create the path without the
// number.
class OwnWrites {
 public:
  // The write to `target` is over. `node` is what it made of the znode `path`; null: it was not carried out,
  // or nobody knows. Called before the writer learns the answer; must not throw.
  using Listener =
      std::function<void(const std::string& target, const std::string& path, const NodeData* node)>;

  class Write;
  class Sets;

  // The target of a write under way whose answer may show what an event about `path` has announced; empty:
  // there is none.
  std::string FindTarget(std::string_view path, EventType event) const;
  Subscription OnEnd(Listener listener) const { return state_->listeners.Add(std::move(listener)); }

  // For clients: a write, or a transaction, is sent.
  Write Begin(std::string target) const;
  Sets Begin(const std::vector<Op>& ops) const;

 private:
  struct State {
    TextMap<int> under_way;  // count by target
    Listeners<const std::string&, const std::string&, const NodeData*> listeners;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

// A write under way. Its destruction without an answer ends it as one of which nobody knows.
class OwnWrites::Write {
 public:
  Write(std::shared_ptr<State> state, std::string target);
  Write(Write&&) noexcept = default;
  Write& operator=(Write&&) = delete;
  ~Write();

  // The answer has come: `node` is what it made of the znode `path`.
  void Succeed(const std::string& path, const NodeData& node) { End(path, &node); }

 private:
  void End(const std::string& path, const NodeData* node);

  std::shared_ptr<State> state_;  // null: over
  std::string target_;
};

// The records that a transaction changes. What it creates is not followed: the answer does not show all of
// the stat.
class OwnWrites::Sets {
 public:
  // The answer to the transaction of these operations, which are those of Begin.
  void End(const std::vector<Op>& ops, const MultiResult& answer);

 private:
  friend class OwnWrites;
  std::map<std::size_t, Write> writes_;  // by the place of the operation
};

// A connection to ZooKeeper and the session it carries. Implementations: WireClient
// (the protocol), MemoryZk's clients (in-process tree), FaultyZk (wraps either).
//
// Paths are absolute and without the chroot. Operations are sent in the order of
// the calls and answered in that order; they need not be awaited one by one.
//
// Errors, apart from the ordinary answers in Result:
//   Error(kRetry)        the connection was lost while the operation was under
//                        way: it may or may not have been carried out.
//   Error(kLostSession)  the session expired, or the client is closed.
//   Error(kInvalid)      a path or a size the server would refuse; nothing was sent.
//   Error(kCancelled)    the caller was cancelled; the operation may still be
//                        carried out.
//   Error(kFail)         anything else the server answers.
// An operation called while kConnecting or kSuspended waits for the connection;
// bound it with WithDeadline where waiting for ever is wrong.
class Client {
 public:
  virtual ~Client() = default;

  virtual Task<Result<Created>> Create(std::string path, std::string data, CreateMode mode) = 0;
  virtual Task<Result<NodeData>> Get(std::string path) = 0;
  // kNoNode when it does not exist.
  virtual Task<Result<Stat>> Exists(std::string path) = 0;
  virtual Task<Result<Stat>> Set(std::string path, std::string data, std::int32_t version = -1) = 0;
  virtual Task<Result<>> Delete(std::string path, std::int32_t version = -1) = 0;
  virtual Task<Result<Children>> GetChildren(std::string path) = 0;
  virtual Task<MultiResult> Multi(std::vector<Op> ops) = 0;
  // Many reads in one message with one answer, which costs the servers and this process a fraction
  // of separate calls. Each read succeeds or fails for itself; the results are in the order of
  // `ops`. The default implementation sends them one by one.
  virtual Task<std::vector<ReadResult>> ReadMany(std::vector<ReadOp> ops);
  // Ends when this server has caught up with the leader.
  virtual Task<> Sync(std::string path) = 0;

  // One-shot watches: `watcher` is called at most once, for the next change of the
  // kind that the read covers, or with kNone when the session is lost. They survive
  // a reconnection within the session. Exists sets the watch also when the znode is
  // missing; the other two set none when they answer kNoNode.
  virtual Task<Result<NodeData>> GetAndWatch(std::string path, Watcher watcher) = 0;
  virtual Task<Result<Stat>> ExistsAndWatch(std::string path, Watcher watcher) = 0;
  virtual Task<Result<Children>> GetChildrenAndWatch(std::string path, Watcher watcher) = 0;

  // A watch that stays until its registration is destroyed. It is re-armed after a reconnection and
  // in a new session; changes made meanwhile are not reported, so a caller that needs all of them
  // reads again when OnSession reports kConnected. Ends when the server has accepted it; the znode
  // need not exist.
  virtual Task<Subscription> AddWatch(std::string path, WatchMode mode, Watcher watcher) = 0;

  // `listener` is called on the loop's thread at every change of state, after the
  // watches were re-armed (kConnected) or dropped (kLost).
  virtual Subscription OnSession(std::function<void(SessionState)> listener) = 0;
  virtual SessionState state() const = 0;
  virtual Session session() const = 0;

  // What this client is writing: for caches, which need not read it.
  virtual const OwnWrites& own_writes() const = 0;

  // Ends the session in good order: its ephemeral znodes vanish at once. Outstanding
  // and later operations fail with kLostSession. Bounded; never throws.
  virtual Task<> Close() = 0;
};

// Path making (coordination.md 3.4): creates `path` and its missing ancestors as
// empty persistent znodes; those that exist are left alone.
Task<> EnsurePath(Client& client, std::string path);

// Create, and where the parent is missing, the missing ancestors, too.
Task<Result<Created>> CreateWithParents(Client& client, std::string path, std::string data, CreateMode mode);

// Deletes the znode and all below it, deepest first; a missing one is success. kNotEmpty when
// another client keeps creating children meanwhile.
Task<Result<>> DeleteRecursive(Client& client, std::string path);

// The parent of an absolute path; "/" for a top-level one.
std::string ParentPath(std::string_view path);
// The last component.
std::string BaseName(std::string_view path);

}  // namespace nodepool::zk
