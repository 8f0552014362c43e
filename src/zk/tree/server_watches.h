#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "zk/tree/tree.h"
#include "zk/wire/protocol.h"
#include "zk/znode.h"

namespace nodepool::zk {

// A server's side of watches: which connection is notified of which changes. Pure and ordered.
//
//   data watches      one-shot: created, deleted, changed of the path
//   child watches     one-shot: deleted of the path, a child created or deleted
//   persistent        stay: both of the above
//   recursive         stay: created, deleted, changed of the path and all below;
//                     no child events
//
// However many watches of a connection match a change, it is sent one event per path
// (coordination.md 2.9).
class ServerWatches {
 public:
  using ConnectionId = std::int64_t;  // the caller numbers the connections

  struct Delivery {
    ConnectionId connection_id;
    WatchEvent event;
  };

  // Setting a watch twice has the same effect as setting it once.
  void AddData(const std::string& path, ConnectionId connection_id) { data_.Add(path, connection_id); }
  void AddChildren(const std::string& path, ConnectionId connection_id) {
    children_.Add(path, connection_id);
  }
  void AddStaying(const std::string& path, WatchMode mode, ConnectionId connection_id);

  // The watches of a connection that has ended and whose number is not used again. They fire no more; their
  // memory is freed by Free().
  void RemoveAll(ConnectionId connection_id);
  // Frees up to `count` removed watches; whether there are more.
  bool Free(std::size_t count);
  // These concern the one-shot watches of the chosen kinds and all persistent ones, as the
  // protocol's removeWatches means them. Both return whether there was one.
  bool Has(const std::string& path, ConnectionId connection_id, bool data, bool children) const;
  bool Remove(const std::string& path, ConnectionId connection_id, bool data, bool children);

  // The events that a change (kCreated, kDeleted or kDataChanged) sends: first the event of the
  // path itself, then the child event of its parent. One-shot watches that fire are removed.
  std::vector<Delivery> Trigger(const WatchEvent& change);

  // After a reconnection in the same session: sets the watches of `paths` again for
  // `connection_id`, except the one-shot ones for which something happened after
  // `seen_zxid`; returns the events missed for those.
  std::vector<WatchEvent> Restore(const DataTree& tree, ConnectionId connection_id, std::int64_t seen_zxid,
                                  const protocol::WatchPaths& paths);

  std::size_t size() const;
  // Roughly the memory that the connection's watches take, and that one takes.
  std::size_t BytesOf(ConnectionId connection_id) const;
  static std::size_t BytesOf(std::string_view path) { return path.size() + 200; }
  // Of all connections, with what is not freed yet of those that have ended.
  std::size_t bytes() const;

 private:
  class Index {
   public:
    void Add(const std::string& path, ConnectionId connection_id);
    bool Remove(const std::string& path, ConnectionId connection_id);
    void RemoveAll(ConnectionId connection_id);
    // Lowers `count` by the number of freed watches.
    void Free(std::size_t& count);
    bool has_ended() const { return !ended_.empty(); }
    bool Has(const std::string& path, ConnectionId connection_id) const;
    std::size_t BytesOf(ConnectionId connection_id) const;
    // Adds the connections that watch `path` to `to`.
    void Collect(std::string_view path, std::set<ConnectionId>& to) const;
    // The same, and removes them.
    void Take(const std::string& path, std::set<ConnectionId>& to);
    bool empty() const { return by_path_.empty(); }
    std::size_t size() const { return size_; }
    std::size_t bytes() const { return bytes_; }

   private:
    void RemoveFromPath(const std::string& path, ConnectionId connection_id);

    std::map<std::string, std::set<ConnectionId>, std::less<>> by_path_;
    struct Own {
      std::set<std::string> paths;
      std::size_t bytes = 0;
    };
    std::map<ConnectionId, Own> by_connection_;
    std::map<ConnectionId, std::set<std::string>> ended_;  // still in `by_path_`
    std::size_t size_ = 0;                                 // without those
    std::size_t bytes_ = 0;                                // with those
  };

  void CollectRecursive(std::string_view path, std::set<ConnectionId>& to) const;

  Index data_;
  Index children_;
  Index persistent_;
  Index recursive_;
};

}  // namespace nodepool::zk
