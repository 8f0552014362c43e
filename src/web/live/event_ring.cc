#include "web/live/event_ring.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/text.h"

namespace nodepool::web {

namespace {

constexpr std::size_t kMaxRecent = 16;

}  // namespace

void EventRing::Append(Topic topic, std::string_view json, SteadyTime now, Audience audience) {
  recent_.clear();
  std::string text = fmt::format("id: {}\nevent: {}\ndata: {}\n\n", IdBefore(end() + 1), NameOf(topic), json);
  bytes_ += text.size();
  events_.push_back({topic, now, std::move(audience), std::make_shared<const std::string>(std::move(text))});
  while (events_.size() > limits_.events || (bytes_ > limits_.bytes && events_.size() > 1)) {
    bytes_ -= events_.front().text->size();
    events_.pop_front();
    ++first_;
  }
}

void EventRing::Clear() {
  recent_.clear();
  first_ = end() + 1;
  events_.clear();
  bytes_ = 0;
}

EventRing::Position EventRing::Since(SteadyTime time) const {
  auto found = std::ranges::lower_bound(events_, time, {}, &Event::at);
  return first_ + static_cast<Position>(found - events_.begin());
}

std::string EventRing::IdBefore(Position position) const {
  return fmt::format("{}-{}", epoch_, position - 1);
}

std::optional<EventRing::Position> EventRing::After(std::string_view id) const {
  bool is_ours = id.size() > epoch_.size() && id.starts_with(epoch_) && id[epoch_.size()] == '-';
  if (!is_ours) return std::nullopt;
  std::string_view digits = id.substr(epoch_.size() + 1);
  Position number = 0;
  auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || rest != digits.data() + digits.size()) return std::nullopt;
  if (number + 1 < first_ || number >= end()) return std::nullopt;
  return number + 1;
}

EventRing::Part EventRing::Join(Position from, Topics topics, const Viewer& viewer) const {
  std::vector<const Event*> events;
  std::size_t bytes = 0;
  Position next = from;
  for (; next < end(); ++next) {
    const Event& event = events_[next - first_];
    if (!Contains(topics, event.topic) || !MaySee(viewer, event.audience)) continue;
    bytes += event.text->size();
    if (!events.empty() && bytes > limits_.part_bytes) break;
    events.push_back(&event);
  }
  if (events.size() == 1) return {events.front()->text, next};
  std::string text;
  for (const Event* event : events) text += *event->text;
  return {std::make_shared<const std::string>(std::move(text)), next};
}

std::optional<EventRing::Part> EventRing::Read(Position from, Topics topics, const Viewer& viewer) {
  if (from < first_ || from > end()) return std::nullopt;
  std::tuple key(from, topics.to_ulong(), viewer);
  if (auto found = recent_.find(key); found != recent_.end()) return found->second;
  if (recent_.size() >= kMaxRecent) recent_.clear();
  return recent_[key] = Join(from, topics, viewer);
}

Expected<Topics> ReadTopics(std::string_view names) {
  Topics topics;
  if (names.empty()) return topics.set().reset(static_cast<std::size_t>(Topic::kLeases));
  for (const std::string& name : Split(names, ',')) {
    auto found = std::ranges::find(kTopicNames, name);
    if (found == std::end(kTopicNames)) {
      return Unexpected(Verdict::kInvalid,
                        fmt::format("topics are {}, not {}.", fmt::join(kTopicNames, ", "), Excerpt(name)));
    }
    topics.set(static_cast<std::size_t>(found - std::begin(kTopicNames)));
  }
  return topics;
}

}  // namespace nodepool::web
