#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/listeners.h"
#include "base/subscription.h"
#include "base/text_hash.h"
#include "zk/types.h"

namespace nodepool::zk {

// The writes of one client that are under way. ZooKeeper announces a change before it answers the write that
// made it, so whoever hears of a change of a znode that the same client is writing need not read it: the
// answer will show the znode as it is, with all changes that were announced before.
//
// A write is known by its target: the path of the znode, or of a sequential create the path without the
// number.
class OwnWrites {
 public:
  // The write to `target` is over. `node` is what it made of the znode `path`; null: it was not carried out,
  // or nobody knows. Called before the writer learns the answer; must not throw.
  using Listener =
      std::function<void(const std::string& target, const std::string& path, const NodeData* node)>;

  class Write;
  class Sets;

  // The target of a write under way whose answer may show what an event about `path` has announced; empty:
  // there is none.
  std::string FindTarget(std::string_view path, EventType event) const;
  Subscription OnEnd(Listener listener) const { return state_->listeners.Add(std::move(listener)); }

  // For clients: a write, or a transaction, is sent.
  Write Begin(std::string target) const;
  Sets Begin(const std::vector<Op>& ops) const;

 private:
  struct State {
    TextMap<int> under_way;  // count by target
    Listeners<const std::string&, const std::string&, const NodeData*> listeners;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

// A write under way. Its destruction without an answer ends it as one of which nobody knows.
class OwnWrites::Write {
 public:
  Write(std::shared_ptr<State> state, std::string target);
  Write(Write&&) noexcept = default;
  Write& operator=(Write&&) = delete;
  ~Write();

  // The answer has come: `node` is what it made of the znode `path`.
  void Succeed(const std::string& path, const NodeData& node) { End(path, &node); }

 private:
  void End(const std::string& path, const NodeData* node);

  std::shared_ptr<State> state_;  // null: over
  std::string target_;
};

// The records that a transaction changes. What it creates is not followed: the answer does not show all of
// the stat.
class OwnWrites::Sets {
 public:
  // The answer to the transaction of these operations, which are those of Begin.
  void End(const std::vector<Op>& ops, const MultiResult& answer);

 private:
  friend class OwnWrites;
  std::map<std::size_t, Write> writes_;  // by the place of the operation
};

}  // namespace nodepool::zk
