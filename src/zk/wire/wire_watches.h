#pragma once

#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/subscription.h"
#include "base/text_hash.h"
#include "zk/client.h"
#include "zk/wire/protocol.h"

namespace nodepool::zk {

// The watches of a client and their watchers (coordination.md 2.9). Paths are without the chroot.
// Watchers may add and remove watches while they are called.
class WatchTable : public std::enable_shared_from_this<WatchTable> {
 public:
  // The lists that a server keeps apart.
  enum class OneShotKind { kData, kExist, kChild };

  void AddOneShot(OneShotKind kind, std::string path, Watcher watcher);
  // The watch stays until the registration is destroyed, which may outlive the table.
  Subscription AddLasting(WatchMode mode, std::string path, Watcher watcher);

  // Hands an event to all watchers it concerns. One event serves all: the one-shot watches of the
  // path (which are removed), the persistent ones of the path and the recursive ones of the path
  // and its ancestors.
  void Dispatch(const WatchEvent& event);

  // The session is lost: each one-shot watcher is called with kNone and removed. The lasting ones
  // stay for the next session.
  void DropOneShots();

  // The watches that a server must be sent after a reconnection.
  protocol::WatchPaths Paths() const;

 private:
  struct Entry {
    Watcher watcher;
    bool is_active = true;
  };
  using OneShots = TextMap<std::vector<Watcher>>;
  // Shared so that a watcher may end its own registration while it runs.
  using Lasting = TextMap<std::list<std::shared_ptr<Entry>>>;

  static void Take(OneShots& from, const std::string& path, std::vector<Watcher>& into);
  void NotifyLasting(const Lasting& watches, const std::string& path, const WatchEvent& event);
  void NotifyAncestors(const WatchEvent& event);
  OneShots& one_shots(OneShotKind kind);
  Lasting& lasting(WatchMode mode) { return mode == WatchMode::kPersistent ? persistent_ : recursive_; }

  OneShots data_;
  OneShots exist_;
  OneShots child_;
  Lasting persistent_;
  Lasting recursive_;
};

}  // namespace nodepool::zk
