#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tree_model.h"
#include "zk/server/engine.h"

namespace nodepool::zk::server {

// The embedded server beside a model of its tree and of its watches. Requests go through the protocol's
// encoding; an answer or an event that is not the models' ends the program.
class CheckedServer {
 public:
  // 1 to 3, always open. The first one's client is the owner of the access lists.
  static constexpr std::int64_t kSessions = 3;

  CheckedServer();

  // `watch`: with every kind of one-shot watch.
  void Read(std::int64_t session, const std::string& path, bool watch);
  void AddWatch(std::int64_t session, const std::string& path, WatchMode mode);
  void RemoveWatches(std::int64_t session, const std::string& path, int kind);
  void SetAccess(std::int64_t session, const std::string& path, Access access, std::int32_t version);
  // A CheckOp is nothing outside of a transaction.
  void Write(std::int64_t session, const Op& op);
  void Transact(std::int64_t session, const std::vector<Op>& ops);
  // Closes the session and opens another one with its number.
  void Reopen(std::int64_t session);
  void DeleteEmptyContainers();
  // Replaces the server by one that is restored from what was stored. All connections end.
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
  void StartEngine();
  void Connect(std::int64_t session);
  void CheckEvents();
  static TreeModel::Client ClientOf(std::int64_t session) { return {session, session == 1}; }

  std::unique_ptr<Engine> engine_;
  TreeModel model_;
  WatchModel watches_;
  std::map<std::int64_t, Engine::Peer> peers_;  // by session
  ServerWatches::ConnectionId last_connection_ = 0;
  std::vector<WatchModel::Told> told_;  // by the engine, since the last check
  Stored stored_;
  std::int32_t xid_ = 0;
  std::string answer_;
  JuteReader body_{""};
};

}  // namespace nodepool::zk::server
