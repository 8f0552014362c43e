#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "zk/types.h"

namespace nodepool::zk {

// The data of a ZooKeeper server: znodes, their stats, sessions' ephemeral znodes.
// Answers, stats and numbering are a real server's (coordination.md 3.2). Pure: no
// I/O, time comes from the caller, everything is ordered, so the same calls always
// give the same tree.
//
// Every writing call is one transaction and uses up one transaction id (zxid),
// also when it is refused. Paths and limits are checked; sizes are the caller's
// business. The ids of sessions are the caller's; 0 means none.
class DataTree {
 public:
  // Told about every znode created, deleted or changed, in order, after the
  // transaction as a whole succeeded. Child events are left to whoever keeps
  // watches (ServerWatches::Trigger).
  using ChangeListener = std::function<void(const WatchEvent&)>;

  // Starts with "/", "/zookeeper" and what a server keeps there.
  DataTree();

  void OnChange(ChangeListener listener) { listener_ = std::move(listener); }

  // Only open sessions may own ephemeral znodes. Closing deletes them.
  void OpenSession(std::int64_t session);
  void CloseSession(std::int64_t session);
  bool IsOpen(std::int64_t session) const { return ephemerals_.contains(session); }

  // Reads. Apart from kNoNode they answer kBadArguments for a malformed path.
  Result<NodeData> Get(std::string_view path) const;
  Result<Stat> Exists(std::string_view path) const;
  Result<Children> GetChildren(std::string_view path) const;

  // Writes, by `session` at `now`. Besides the ordinary answers: kBadArguments,
  // kSessionExpired for a session that is not open, kUnimplemented for znodes with
  // a time to live (as a server without extended types answers).
  Result<Created> Create(const CreateOp& op, std::int64_t session, WallTime now);
  Result<Stat> Set(const SetOp& op, std::int64_t session, WallTime now);
  Result<> Delete(const DeleteOp& op, std::int64_t session);
  MultiResult Multi(const std::vector<Op>& ops, std::int64_t session, WallTime now);

  std::int64_t last_zxid() const { return zxid_; }
  // The ephemeral znodes of a session.
  std::set<std::string> Ephemerals(std::int64_t session) const;
  std::size_t size() const { return size_; }  // number of znodes, the server's own included

 private:
  struct Node;
  class Transaction;

  const Node* Find(std::string_view path) const;
  Node* Find(std::string_view path);

  struct Node {
    std::string data;
    Stat stat;                 // cversion, data_length and num_children are filled by StatOf
    std::int32_t created = 0;  // children ever created: the next sequence number
    std::map<std::string, std::unique_ptr<Node>, std::less<>> children;
  };
  static Stat StatOf(const Node& node);

  Node root_;
  std::size_t size_ = 1;
  std::int64_t zxid_ = 0;
  std::map<std::int64_t, std::set<std::string>> ephemerals_;
  ChangeListener listener_;
};

}  // namespace nodepool::zk
