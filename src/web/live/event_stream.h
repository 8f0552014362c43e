#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "async/event.h"
#include "async/loop.h"
#include "net/http/http.h"
#include "web/live/event_ring.h"

namespace nodepool::web {

// What event streams read from.
struct Feed {
  EventRing ring;
  WaitList news;            // notified after events and beats
  std::uint64_t beats = 0;  // grows now and then: each stream sends the event `beat` if it has nothing else
  std::size_t streams = 0;  // that are open
};

// The stream of one client: a greeting, then the events of its topics. If it falls behind what the ring
// keeps, it gets the event `reset` in place of what is lost.
class EventStream : public net::BodyStream {
 public:
  // Who the client is at the moment, since tokens are withdrawn and changed; nullopt: the stream is to end.
  using Identify = std::function<std::optional<Viewer>()>;

  // `greeting` is sent first, then the events from the position on. Without `identify` only those that
  // everybody may see.
  EventStream(std::shared_ptr<Feed> feed, Topics topics, EventRing::Position from, std::string greeting,
              Identify identify);
  ~EventStream() override { --feed_->streams; }
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  Task<std::shared_ptr<const std::string>> Next() override;

 private:
  // What there is to send now; null: nothing.
  std::shared_ptr<const std::string> Take();

  std::shared_ptr<Feed> feed_;
  Topics topics_;
  Identify identify_;
  Viewer viewer_;
  EventRing::Position position_;
  std::uint64_t beats_;
  std::shared_ptr<const std::string> greeting_;
};

// The event that makes a client load everything again. Its id is the last one before the position.
std::string ResetEvent(const EventRing& ring, EventRing::Position position);
// The event by which a client sees that the server lives: a comment would be invisible to a page. Its id
// moves the client on past events of other topics.
std::string BeatEvent(const EventRing& ring, EventRing::Position position);

}  // namespace nodepool::web
