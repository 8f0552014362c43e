#pragma once

#include <cstdint>
#include <memory>
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
  std::uint64_t beats = 0;  // grows now and then: each stream sends a sign of life if it has nothing else
  std::size_t streams = 0;  // that are open
};

// The stream of one client: a greeting, then the events of its topics. If it falls behind what the ring
// keeps, it gets the event `reset` in place of what is lost.
class EventStream : public net::BodyStream {
 public:
  // `greeting` is sent first, then the events from the position on.
  EventStream(std::shared_ptr<Feed> feed, Topics topics, EventRing::Position from, std::string greeting);
  ~EventStream() override { --feed_->streams; }
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  Task<std::shared_ptr<const std::string>> Next() override;

 private:
  // What there is to send now; null: nothing.
  std::shared_ptr<const std::string> Take();

  std::shared_ptr<Feed> feed_;
  Topics topics_;
  EventRing::Position position_;
  std::uint64_t beats_;
  std::shared_ptr<const std::string> greeting_;
};

// The event that makes a client load everything again. Its id is the last one before the position.
std::string ResetEvent(const EventRing& ring, EventRing::Position position);

}  // namespace nodepool::web
