#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "zk/tree/tree.h"
#include "zk/types.h"
#include "zk/wire/protocol.h"

namespace nodepool::zk {

// Who wants to hear of which changes: a server's side of watches. Pure and ordered.
//
//   data watches      one-shot: created, deleted, changed of the path
//   child watches     one-shot: deleted of the path, a child created or deleted
//   persistent        stay: both of the above
//   recursive         stay: created, deleted, changed of the path and all below;
//                     no child events
//
// However many watches of a holder match a change, it hears one event per path
// (coordination.md 2.9).
class ServerWatches {
 public:
  using Holder = std::int64_t;  // a connection, as the caller numbers them

  struct Delivery {
    Holder holder;
    WatchEvent event;
  };

  // Setting the same watch twice is setting it once.
  void AddData(const std::string& path, Holder holder) { data_.Add(path, holder); }
  void AddChildren(const std::string& path, Holder holder) { children_.Add(path, holder); }
  void AddStaying(const std::string& path, WatchMode mode, Holder holder);

  // Returns whether there was one. One-shot kinds or staying ones alike.
  bool RemoveData(const std::string& path, Holder holder) { return data_.Remove(path, holder); }
  bool RemoveChildren(const std::string& path, Holder holder) { return children_.Remove(path, holder); }
  bool RemoveStaying(const std::string& path, WatchMode mode, Holder holder);
  void RemoveAll(Holder holder);
  // Of the one-shot watches of the chosen kinds and of all that stay, as the protocol's
  // removeWatches means them. Both return whether there was one.
  bool Has(const std::string& path, Holder holder, bool data, bool children) const;
  bool Remove(const std::string& path, Holder holder, bool data, bool children);

  // Who hears what of a change (kCreated, kDeleted or kDataChanged): first the
  // event of the path itself, then the child event of its parent. One-shot watches
  // that fire are gone.
  std::vector<Delivery> Trigger(const WatchEvent& change);

  // After a reconnection in the same session: sets the watches of `paths` again for
  // `holder`, except the one-shot ones for which something happened after
  // `seen_zxid`; returns the events missed for those.
  std::vector<WatchEvent> Restore(const DataTree& tree, Holder holder, std::int64_t seen_zxid,
                                  const protocol::WatchPaths& paths);

  std::size_t size() const;
  // The length of all paths that the holder watches.
  std::size_t BytesOf(Holder holder) const;

 private:
  class Index {
   public:
    void Add(const std::string& path, Holder holder);
    bool Remove(const std::string& path, Holder holder);
    void RemoveAll(Holder holder);
    bool Has(const std::string& path, Holder holder) const;
    std::size_t BytesOf(Holder holder) const;
    // Adds the holders at `path` to `to`.
    void Collect(std::string_view path, std::set<Holder>& to) const;
    // The same, and removes them.
    void Take(const std::string& path, std::set<Holder>& to);
    bool empty() const { return by_path_.empty(); }
    std::size_t size() const;

   private:
    std::map<std::string, std::set<Holder>, std::less<>> by_path_;
    struct Own {
      std::set<std::string> paths;
      std::size_t bytes = 0;
    };
    std::map<Holder, Own> by_holder_;
  };

  void CollectRecursive(std::string_view path, std::set<Holder>& to) const;

  Index data_;
  Index children_;
  Index persistent_;
  Index recursive_;
};

}  // namespace nodepool::zk
