#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tree_model.h"
#include "zk/server/engine.h"

namespace nodepool::zk::server {

// The embedded server beside a model of its tree. Requests go through the protocol's encoding; an answer that
// is not the model's ends the program.
class CheckedServer {
 public:
  static constexpr std::int64_t kSessions = 3;  // 1 to 3, always open

  CheckedServer();

  void Read(std::int64_t session, const std::string& path);
  // A CheckOp is nothing outside of a transaction.
  void Write(std::int64_t session, const Op& op);
  void Transact(std::int64_t session, const std::vector<Op>& ops);
  // Closes the session and opens another one with its number.
  void Reopen(std::int64_t session);
  void DeleteEmptyContainers();
  // Replaces the server by one that is restored from what was stored.
  void Restart();
  void CheckAll();

  const TreeModel& model() const { return model_; }

 private:
  struct Stored {
    std::map<std::string, DataTree::Snapshot> znodes;
    std::map<std::int64_t, SessionRecord> sessions;
  };

  // Returns the answer's code; body_ has the rest.
  template <class WriteBody>
  Code Ask(std::int64_t session, protocol::OpCode op, WriteBody write_body);

  std::unique_ptr<Engine> engine_;
  TreeModel model_;
  Stored stored_;
  std::int32_t xid_ = 0;
  std::string answer_;
  JuteReader body_{""};
};

}  // namespace nodepool::zk::server
