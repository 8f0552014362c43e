#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "async/event.h"
#include "async/task_group.h"
#include "zk/client.h"

namespace nodepool::zk {

// Follows everything below one znode with a single persistent recursive watch and reports it to a
// listener. Retains no data beyond what it needs to find differences after a reconnection.
//
// Where the data matters, every change is read (reads are pipelined, their results delivered in the order of
// the changes), but for what the client itself writes, which the write's answer shows. After each
// (re)connection the whole tree is read again and the listener is notified of the differences, so that its
// copy converges.
class TreeCache {
 public:
  // What a listener is told about a path.
  enum class Interest {
    kNone,       // nothing; what is below it may matter nevertheless
    kExistence,  // that it exists, without data and stat
    kData,       // its data and stat, each version
  };
  struct Listener {
    virtual ~Listener() = default;
    // A pure function of the path.
    virtual Interest InterestIn(std::string_view path) const = 0;
    // The znode exists, with this data; called again for each newer version.
    virtual void OnNode(const std::string& path, const NodeData& node) = 0;
    virtual void OnGone(const std::string& path) = 0;
    // Everything that existed when the walk began has been reported. Called once after each walk;
    // before the first call, lists may be incomplete.
    virtual void OnSynced() = 0;
  };

  // `root` is absolute; the root itself is not reported. `listener` must outlive
  // the cache.
  TreeCache(Loop& loop, Client& client, std::string root, Listener& listener);
  ~TreeCache();

  // Starts following; returns at once. Call Stop() before destruction.
  void Start();
  Task<> Stop();

  // Whether the last walk is complete and the connection is up.
  bool synced() const;
  Task<> WaitSynced();
  // Ends when the listener has been notified of everything that any client changed before this was
  // called: after taking a lock, the caller then knows what the former holder did.
  Task<> CatchUp();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nodepool::zk
