#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "zk/server/request.h"
#include "zk/tree/server_watches.h"
#include "zk/tree/tree.h"

namespace nodepool::zk::server {

struct SessionRecord {
  std::int64_t id = 0;
  std::string password;  // 16 bytes; a secret
  std::int32_t timeout_ms = 0;
  bool is_own = false;  // of the process that the server is part of
};

// What has to be written to disk so that the tree can be restored.
struct Changes {
  std::vector<DataTree::Snapshot> stored;  // znodes as they are, parents first
  std::vector<std::string> removed;        // paths
  std::vector<SessionRecord> opened;
  std::vector<std::int64_t> closed;
  std::int64_t zxid = 0;

  bool empty() const { return stored.empty() && removed.empty() && opened.empty() && closed.empty(); }
};

// A ZooKeeper server without sockets, clocks and disk: sessions, tree and watches, and the effect
// of each request on them. Pure as DataTree is.
class Engine {
 public:
  // A connection that has a session.
  struct Peer {
    ServerWatches::ConnectionId connection_id = 0;
    std::int64_t session = 0;
    Identity who;
  };
  enum class Next { kContinue, kClose };
  using Deliver = std::function<void(ServerWatches::ConnectionId, const WatchEvent&, const Acl*)>;

  struct Limits {
    std::size_t tree_bytes = std::size_t{1} << 30;
    std::size_t watch_bytes = std::size_t{64} << 20;  // of one connection
    // Of all connections. When they take more, only those that have few may set further ones.
    std::size_t all_watch_bytes = std::size_t{128} << 20;
    std::size_t few_watch_bytes = std::size_t{64} << 10;
    // Of a request for many znodes at once. A message of a cache (TreeCache) reads 32 of up to 1 MiB.
    std::size_t answer_bytes = std::size_t{48} << 20;
  };

  explicit Engine(Limits limits);

  // Called with each event that a connection has to be sent if it may read a znode with that access
  // list (null: open to everybody), before the answer to the request that caused the event is
  // produced.
  void OnEvent(Deliver deliver) { deliver_ = std::move(deliver); }

  // The caller picks id and password.
  void OpenSession(SessionRecord session);
  // Deletes its ephemeral znodes. Watches belong to connections: see RemoveWatches.
  void CloseSession(std::int64_t id);
  // Null when there is none.
  const SessionRecord* FindSession(std::int64_t id) const;
  // How many bytes the data and the names of the children of a znode take, about.
  std::size_t SizeOf(std::string_view path) const;
  const std::map<std::int64_t, SessionRecord>& sessions() const { return sessions_; }

  // Executes the request of `peer`, whose session is open, and appends the frame of the answer to
  // `out`. Error(kFail): the connection is to be closed; nothing was done.
  Next Execute(const Request& request, Peer& peer, WallTime now, std::string& out);
  void RemoveWatches(ServerWatches::ConnectionId connection_id) { watches_.RemoveAll(connection_id); }
  // Frees the memory of removed watches piece by piece; whether there is more.
  bool FreeWatches() { return watches_.Free(kWatchesAtOnce); }

  // Deletes containers that had children and have none now; returns how many.
  int DeleteEmptyContainers();
  bool HasEmptiedContainers() const { return !emptied_.empty(); }

  // Restores what was stored, before anything is executed. Error(kInvalid) naming the first znode
  // without its parent or its owner.
  void Restore(std::vector<SessionRecord> sessions, std::vector<DataTree::Snapshot> znodes,
               std::int64_t zxid);
  // What changed since the last call, combined.
  Changes TakeChanges();
  // Numbers the changes, so that an answer can wait until those it shows are on disk.
  std::uint64_t change_count() const { return change_count_; }

  const DataTree& tree() const { return tree_; }
  const ServerWatches& watches() const { return watches_; }

 private:
  using OpCode = protocol::OpCode;
  static constexpr std::size_t kWatchesAtOnce = 2000;

  void Changed(const DataTree::Change& change);
  void MarkPath(std::string path);
  void MarkSession(std::int64_t id);
  void NoteEmptied(const std::string& parent);

  Code Answer(const Request& request, Peer& peer, WallTime now, JuteWriter& out);
  Code Refuse(Code code);
  Code Create(const CreateRequest& request, OpCode op, const Peer& peer, WallTime now, JuteWriter& out);
  Code Multi(const MultiRequest& request, const Peer& peer, WallTime now, JuteWriter& out);
  Code MultiRead(const MultiReadRequest& request, const Peer& peer, JuteWriter& out) const;
  Code Get(const std::string& path, const Peer& peer, JuteWriter& out) const;
  Code GetChildren(const std::string& path, OpCode op, const Peer& peer, JuteWriter& out) const;
  Code Read(const PathRequest& request, OpCode op, const Peer& peer, JuteWriter& out);
  Code GetAcl(const std::string& path, const Peer& peer, JuteWriter& out) const;
  Code SetAcl(const SetAclRequest& request, const Peer& peer, JuteWriter& out);
  Code AddWatch(const AddWatchRequest& request, const Peer& peer);
  Code ChangeWatches(const WatchesRequest& request, OpCode op, const Peer& peer);
  void RestoreWatches(const RestoreWatchesRequest& request, const Peer& peer);
  bool MayRead(const std::string& path, const Peer& peer) const;
  void CheckRoomForWatch(const Peer& peer, std::size_t bytes) const;
  void CheckAnswer(std::size_t bytes) const;

  Limits limits_;
  DataTree tree_;
  ServerWatches watches_;
  Deliver deliver_;
  std::map<std::int64_t, SessionRecord> sessions_;
  std::set<std::string> emptied_;  // containers that lost their last child
  std::set<std::string> changed_paths_;
  std::set<std::int64_t> changed_sessions_;
  std::uint64_t change_count_ = 0;
};

}  // namespace nodepool::zk::server
