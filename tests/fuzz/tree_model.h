#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "zk/znode.h"

namespace nodepool::zk {

// What a ZooKeeper server has to answer, as simply as it can be said: a map from paths to znodes, which a
// transaction copies. Watches are in tree_model.h.

// The access lists that are tried; the owner may do everything.
enum class Access { kOpen, kUnreadable, kReadOnly, kPrivate };
constexpr int kAccesses = 4;
Acl ListOf(Access access);
// The owner's name in them.
std::pair<std::string, std::string> OwnerName();

class TreeModel {
 public:
  struct Client {
    std::int64_t session = 0;
    bool is_owner = false;
  };
  // Of a znode: created, deleted or changed, in the order in which it happened.
  struct Change {
    EventType type;
    std::string path;
    Access access;         // of the znode
    Access parent_access;  // of its parent at that moment
  };

  TreeModel();

  // Deletes its ephemeral znodes.
  void CloseSession(std::int64_t session);
  void DeleteEmptyContainers();

  // All operations or none, as DataTree::Multi. Only the code and the created path of a result are set;
  // kBadArguments stands for any refusal of a malformed path.
  MultiResult Apply(const std::vector<Op>& ops, const Client& client);
  Code SetAccess(const std::string& path, Access access, std::int32_t version, const Client& client);
  bool MayRead(const std::string& path, const Client& client) const;
  // Since the last call.
  std::vector<Change> TakeChanges() { return std::exchange(changes_, {}); }

  bool Has(const std::string& path) const { return znodes_.contains(path); }
  const std::string& DataOf(const std::string& path) const { return znodes_.at(path).data; }
  // Without transaction ids and times.
  Stat StatOf(const std::string& path) const;
  std::vector<std::string> ChildrenOf(const std::string& path) const;  // names, in order
  std::size_t CountBelow(const std::string& path) const;
  // Those whose paths begin with `prefix`.
  std::vector<std::string> EphemeralsOf(std::int64_t session, const std::string& prefix = "/") const;
  std::vector<std::string> Paths() const;

  static std::string ParentOf(const std::string& path);
  static bool IsPath(std::string_view path);

 private:
  struct Znode {
    std::string data;
    std::int32_t version = 0;
    std::int32_t created = 0;  // children ever created
    std::int64_t owner = 0;    // 0: it is not ephemeral
    bool is_container = false;
    Access access = Access::kOpen;
    std::int32_t access_version = 0;
  };

  Code Do(const CreateOp& op, const Client& client, std::string& path);
  Code Do(const SetOp& op, const Client& client);
  Code Do(const DeleteOp& op, const Client& client);
  Code Do(const CheckOp& op, const Client& client) const;
  Code Find(const std::string& path, std::int32_t wanted, std::int32_t version, const Client& client) const;
  void Remove(const std::string& path);
  void Note(EventType type, const std::string& path);

  std::map<std::string, Znode> znodes_;
  std::vector<Change> changes_;
};

// Who has to be told of a change, as simply as it can be said: a set of watches, searched for each change.

class WatchModel {
 public:
  enum class Kind { kData, kChildren, kPersistent, kRecursive };
  struct Told {
    std::int64_t connection = 0;
    EventType type = EventType::kNone;
    std::string path;
    bool operator==(const Told&) const = default;
  };

  void Add(std::int64_t connection, Kind kind, const std::string& path) {
    watches_.insert({connection, kind, path});
  }
  // Those of a path that the protocol's removeWatches means: 1 children, 2 data, 3 any, and with each all
  // that stay. Whether there was one.
  bool Remove(std::int64_t connection, int kind, const std::string& path);
  void RemoveAll(std::int64_t connection);

  // The watches that fire about `path` itself; one-shot ones are used up.
  std::vector<Told> TellOf(EventType type, const std::string& path);

 private:
  std::set<std::tuple<std::int64_t, Kind, std::string>> watches_;
};

}  // namespace nodepool::zk
