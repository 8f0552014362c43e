#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "zk/types.h"

// Who has to be told of a change, as simply as it can be said: a set of watches, searched for each change.
namespace nodepool::zk {

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
