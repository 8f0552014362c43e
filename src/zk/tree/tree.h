#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "zk/znode.h"

namespace nodepool::zk {

// The data of a ZooKeeper server: znodes, their stats, sessions' ephemeral znodes. Answers, stats
// and numbering are a real server's (coordination.md 3.2). Pure: no I/O, the caller passes the
// time, everything is ordered, so the same calls always give the same tree.
//
// Every writing call is one transaction and uses up one transaction id (zxid), also when it is
// refused. Paths and limits are checked here; the caller checks sizes and chooses the ids of
// sessions (0 means none).
class DataTree {
 public:
  // A znode created, deleted or changed, with what the tree may no longer show when the transaction is
  // over: a later operation of it may have removed the znode, or its parent.
  struct Change {
    WatchEvent event;
    std::shared_ptr<const Acl> acl;         // of the znode; null: open to everybody
    std::shared_ptr<const Acl> parent_acl;  // the same, of its parent
  };
  // Called for every change, in order, after the transaction as a whole succeeded. Child events are left
  // to the owner of the watches (ServerWatches::Trigger).
  using ChangeListener = std::function<void(const Change&)>;

  // Starts with "/", "/zookeeper" and the znodes that a server keeps there.
  DataTree();
  ~DataTree();
  DataTree(const DataTree&) = delete;
  DataTree& operator=(const DataTree&) = delete;

  void OnChange(ChangeListener listener) { listener_ = std::move(listener); }

  // Only open sessions may own ephemeral znodes. Closing deletes them.
  void OpenSession(std::int64_t session);
  void CloseSession(std::int64_t session);
  bool IsOpen(std::int64_t session) const { return ephemerals_.contains(session); }

  // Reads. Apart from kNoNode they answer kBadArguments for a malformed path.
  Result<NodeData> Get(std::string_view path) const;
  Result<Stat> Exists(std::string_view path) const;
  Result<Children> GetChildren(std::string_view path) const;
  // How many znodes are below it.
  Result<std::size_t> CountBelow(std::string_view path) const;

  // Writes, by `session` at `now`. Besides the ordinary answers: kBadArguments,
  // kSessionExpired for a session that is not open, kUnimplemented for znodes with
  // a time to live (as a server without extended types answers), kNoAuth when access
  // lists do not permit it to `who` (null: anybody may do anything), kQuotaExceeded
  // beyond the limit.
  Result<Created> Create(const CreateOp& op, std::int64_t session, WallTime now,
                         const Identity* who = nullptr);
  Result<Stat> Set(const SetOp& op, std::int64_t session, WallTime now, const Identity* who = nullptr);
  Result<> Delete(const DeleteOp& op, std::int64_t session, const Identity* who = nullptr);
  MultiResult Multi(const std::vector<Op>& ops, std::int64_t session, WallTime now,
                    const Identity* who = nullptr);

  // The access list of a znode, null for one open to everybody; kNoNode.
  Result<std::shared_ptr<const Acl>> AclOf(std::string_view path) const;
  // Replaces it. `version` is that of the list; -1: any. The listener is not called.
  Result<Stat> SetAcl(std::string_view path, std::shared_ptr<const Acl> acl, std::int32_t version,
                      const Identity* who = nullptr);

  // For keeping the tree on disk: Export copies a znode, Restore puts one back. Restore wants the
  // parent first and an open session as the owner of an ephemeral znode; it replaces an existing
  // znode, retains its children, and returns whether it succeeded.
  struct Snapshot {
    std::string path;
    std::string data;
    Stat stat;                 // without cversion, data_length and num_children
    std::int32_t created = 0;  // children ever created
    std::shared_ptr<const Acl> acl;
  };
  std::optional<Snapshot> Export(std::string_view path) const;
  bool Restore(Snapshot znode);
  void RestoreSession(std::int64_t session) { ephemerals_.try_emplace(session); }
  // Transaction ids continue after `zxid`.
  void ContinueAfter(std::int64_t zxid) { zxid_ = zxid; }

  // Writes that would make bytes() larger than this are refused.
  void LimitBytes(std::size_t limit) { limit_ = limit; }
  // Roughly the memory that the znodes take.
  std::size_t bytes() const { return bytes_; }

  // Whether it is a container that had children and has none now, which a stat does not show.
  bool IsEmptiedContainer(std::string_view path) const;

  std::int64_t last_zxid() const { return zxid_; }
  std::size_t ephemeral_count() const;
  // The ephemeral znodes of a session.
  const std::set<std::string>& Ephemerals(std::int64_t session) const;
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
    std::shared_ptr<const Acl> acl;
    std::map<std::string, std::unique_ptr<Node>, std::less<>> children;
  };
  static Stat StatOf(const Node& node);
  static std::size_t BytesOf(std::string_view path, const Node& node);

  Node root_;
  std::size_t size_ = 1;
  std::size_t bytes_ = 0;
  std::size_t limit_ = std::numeric_limits<std::size_t>::max();
  std::int64_t zxid_ = 0;
  std::map<std::int64_t, std::set<std::string>> ephemerals_;
  ChangeListener listener_;
};

}  // namespace nodepool::zk
