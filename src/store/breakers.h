#pragma once

#include <functional>
#include <optional>
#include <string>

#include "store/records.h"
#include "store/tree.h"

namespace nodepool::store {

// The records of open breakers in the tree (breaker.md 4). Several launchers write them.
class Breakers {
 public:
  // What becomes of the record, as it is now; nullopt: there is none, and there is to be none. A record that
  // cannot be read counts as none.
  using Change = std::function<std::optional<Breaker>(std::optional<Breaker>)>;

  explicit Breakers(Tree& tree) : tree_(tree) {}

  // Applies the change to the newest version, and again if another client writes meanwhile; writes nothing if
  // it changes nothing. Returns the record as it is then.
  Task<std::optional<Breaker>> Update(BreakerKey key, Change change);

 private:
  Task<std::optional<Breaker>> TryUpdate(BreakerKey key, Change change);
  Task<> Write(std::string path, std::string data, std::int32_t version);
  Task<> Remove(std::string path, std::int32_t version);
  Task<> Create(std::string path, std::string data);

  Tree& tree_;
};

}  // namespace nodepool::store
