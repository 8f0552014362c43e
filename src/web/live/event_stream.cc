#include "web/live/event_stream.h"

#include <fmt/format.h>

#include <utility>

namespace nodepool::web {

std::string ResetEvent(const EventRing& ring, EventRing::Position position) {
  return fmt::format("id: {}\nevent: reset\ndata: {{}}\n\n", ring.IdBefore(position));
}

std::string BeatEvent(const EventRing& ring, EventRing::Position position) {
  return fmt::format("id: {}\nevent: beat\ndata: {{}}\n\n", ring.IdBefore(position));
}

EventStream::EventStream(std::shared_ptr<Feed> feed, Topics topics, EventRing::Position from,
                         std::string greeting, Identify identify)
    : feed_(std::move(feed)),
      topics_(topics),
      identify_(std::move(identify)),
      position_(from),
      beats_(feed_->beats),
      greeting_(std::make_shared<const std::string>(std::move(greeting))) {
  ++feed_->streams;
}

std::shared_ptr<const std::string> EventStream::Take() {
  if (greeting_) return std::exchange(greeting_, nullptr);
  std::uint64_t beats = std::exchange(beats_, feed_->beats);
  EventRing& ring = feed_->ring;
  std::optional<EventRing::Part> part = ring.Read(position_, topics_, viewer_);
  if (!part) {
    position_ = ring.end();
    return std::make_shared<const std::string>(ResetEvent(ring, position_));
  }
  position_ = part->next;
  if (!part->text->empty()) return part->text;
  if (beats_ == beats) return nullptr;
  return std::make_shared<const std::string>(BeatEvent(ring, position_));
}

Task<std::shared_ptr<const std::string>> EventStream::Next() {
  while (true) {
    if (identify_) {
      std::optional<Viewer> viewer = identify_();
      if (!viewer) co_return nullptr;
      viewer_ = std::move(*viewer);
    }
    if (std::shared_ptr<const std::string> text = Take()) co_return text;
    co_await feed_->news.Wait();
  }
}

}  // namespace nodepool::web
