#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "async/event.h"
#include "async/loop.h"
#include "zk/server/engine.h"
#include "zk/wire/wire_connection.h"

namespace nodepool::zk::server {

// When sessions expire: each one time-out after the last message of its client, which starts anew when this
// process could not read messages meanwhile, because it was stopped or busy. One timer per session, which is
// restarted only when it fires.
class SessionClock {
 public:
  using Expire = std::function<void(std::int64_t session)>;

  // `expire` is called on the loop; the session is no longer timed then.
  SessionClock(Loop& loop, Expire expire) : loop_(loop), expire_(std::move(expire)) {}
  ~SessionClock();
  SessionClock(const SessionClock&) = delete;
  SessionClock& operator=(const SessionClock&) = delete;

  void Start(std::int64_t session, Duration timeout);
  void Heard(std::int64_t session);
  void Stop(std::int64_t session);
  // Of a session that is timed.
  SteadyTime LastHeard(std::int64_t session) const { return timed_.at(session).heard; }

 private:
  struct Timed {
    Duration timeout;
    SteadyTime heard;
    Clock::TimerId timer;
  };

  void Arm(std::int64_t session, Timed& timed);
  void Check(std::int64_t session);

  Loop& loop_;
  Expire expire_;
  std::map<std::int64_t, Timed> timed_;
};

// A client's connection as the server sees it. A frame may show changes that are not on disk yet,
// so all frames are sent through here and wait, in order, until those changes are.
class Connection {
 public:
  Connection(ServerWatches::ConnectionId connection_id, std::shared_ptr<WireConnection> wire)
      : wire_(std::move(wire)) {
    peer_.connection_id = connection_id;
  }

  // Sends `frames`, which may be large and show all changes up to number `change`; `durable` is the number of
  // the last change on disk. Returns whether the frames were held back. Does nothing after Close().
  bool Send(std::string frames, std::uint64_t change, std::uint64_t durable);
  // Sends the frames that waited for changes up to `durable`.
  void Release(std::uint64_t durable);
  // Ends the connection and drops what is not sent.
  void Close(std::string reason);
  bool holds_back() const { return !held_.empty(); }
  // Bytes held back or not yet taken by the client.
  std::size_t backlog() const { return held_bytes_ + wire_->unsent(); }
  // The backlog, and the memory for requests that have not been executed.
  std::size_t bytes() const { return backlog() + wire_->received_capacity(); }
  // Ends when the backlog is empty. Error(kRetry) when the connection has ended.
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

// A client's right to have what it has sent at once executed. The first request needs none, unless it may
// take long; for everything else one client at a time has a turn of a few milliseconds, after which the loop
// does what else it has to do. So a client that sends little waits for one turn, whatever the others send.
class Turn {
 public:
  // `gate` lets one turn at a time pass. Both outlive it.
  Turn(Loop& loop, Gate& gate) : loop_(loop), gate_(gate) {}
  ~Turn() { End(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // Before each request; `is_long`: it may take long. False: it has to wait with Begin().
  bool Covers(bool is_long);
  Task<> Begin();
  // Lets others have their turns, e.g. before a wait.
  void End();

 private:
  Loop& loop_;
  Gate& gate_;
  Gate::Pass pass_;
  bool is_first_ = true;
  std::optional<SteadyTime> ends_;  // while it has begun
};

// What the four-letter words report besides the engine's own numbers.
struct Traffic {
  std::size_t connections = 0;
  std::uint64_t received = 0;  // frames
  std::uint64_t sent = 0;      // answers and events
  std::uint64_t commits = 0;   // transactions of the journal
};

// The answer to ruok, srvr, stat, mntr, dump and isro; nullopt for anything else. A stranger, who would have
// to show a secret for a session, gets to know nothing by them.
std::optional<std::string> AnswerWord(std::string_view word, const Engine& engine, const Traffic& traffic,
                                      bool is_stranger);

}  // namespace nodepool::zk::server
