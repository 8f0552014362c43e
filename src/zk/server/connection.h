#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "zk/server/engine.h"
#include "zk/wire/wire_connection.h"

namespace nodepool::zk::server {

// A client as the server sees it. What it is sent may show changes that are not on disk
// yet, so everything goes through here and waits for them, in order.
class Connection {
 public:
  Connection(ServerWatches::Holder holder, std::shared_ptr<WireConnection> wire) : wire_(std::move(wire)) {
    peer_.holder = holder;
  }

  // Sends `frames`, which show what was changed up to `change`; `durable` counts the
  // changes that are on disk. Returns whether they were held back.
  bool Send(std::string_view frames, std::uint64_t change, std::uint64_t durable);
  // Sends what waited for changes up to `durable`.
  void Release(std::uint64_t durable);
  bool holds_back() const { return !held_.empty(); }
  // Bytes that the client has not been sent, or has not taken.
  std::size_t backlog() const { return held_bytes_ + wire_->unsent(); }
  // Ends when the backlog is gone. Error(kRetry) when the connection has ended.
  Task<> WaitUntilSent();

  Engine::Peer& peer() { return peer_; }
  WireConnection& wire() { return *wire_; }

 private:
  struct Held {
    std::uint64_t change;
    std::string frames;
  };

  std::shared_ptr<WireConnection> wire_;
  Engine::Peer peer_;
  std::deque<Held> held_;
  std::size_t held_bytes_ = 0;
  WaitList released_;
};

}  // namespace nodepool::zk::server
