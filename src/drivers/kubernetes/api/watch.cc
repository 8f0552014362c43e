#include "drivers/kubernetes/api/watch.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>

#include "base/json_fields.h"

namespace nodepool::drivers::kubernetes {

namespace json = boost::json;

namespace {

constexpr std::size_t kReadHere = 64 * 1024;

WatchEvent::Kind KindOf(const std::string& type) {
  using Kind = WatchEvent::Kind;
  if (type == "ERROR") return Kind::kError;
  if (type == "BOOKMARK") return Kind::kBookmark;
  return type == "DELETED" ? Kind::kDeleted : Kind::kChanged;
}

std::optional<WatchEvent> Read(std::string_view line) {
  boost::system::error_code error;
  json::value parsed = json::parse(line, error);
  const json::object* source = error ? nullptr : ObjectIn(parsed, "object");
  if (source == nullptr) return std::nullopt;
  WatchEvent event;
  event.kind = KindOf(TextIn(parsed.as_object(), "type"));
  if (event.kind == WatchEvent::Kind::kError) return event;
  if (const json::object* metadata = ObjectIn(*source, "metadata"))
    event.version = TextIn(*metadata, "resourceVersion");
  event.object = ReadObject(*source);
  event.object.weight = WeightOf(line.size());
  return event;
}

}  // namespace

Task<std::optional<WatchEvent>> ReadEvent(BlockingPool& pool, std::string line) {
  if (line.size() <= kReadHere) co_return Read(line);
  auto read = [line = std::move(line)] { return Read(line); };
  std::optional<WatchEvent> event = co_await OnBlockingPool(pool, std::move(read));
  co_return event;
}

bool LineQueue::Add(std::string_view text) {
  if (is_closed_) return false;
  waiting_ += text.size();
  if (waiting_ > limits_.waiting)
    return Refuse(fmt::format("more than {} KiB of the answer wait to be handled", limits_.waiting >> 10));
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    begun_.append(text.substr(0, end));
    text.remove_prefix(end + 1);
    --waiting_;
    if (begun_.size() > limits_.line) break;
    if (!begun_.empty()) lines_.push_back(std::exchange(begun_, {}));
  }
  begun_.append(text);
  if (begun_.size() > limits_.line)
    return Refuse(fmt::format("a line of the answer is longer than {} KiB", limits_.line >> 10));
  changed_.Set();
  return true;
}

bool LineQueue::Refuse(std::string why) {
  Close(Failure(Error(Verdict::kFail, std::move(why))));
  return false;
}

void LineQueue::Close(std::optional<Failure> failure) {
  if (std::exchange(is_closed_, true)) return;
  failure_ = std::move(failure);
  changed_.Set();
}

Task<std::optional<std::string>> LineQueue::Next() {
  while (lines_.empty() && !is_closed_) {
    changed_.Reset();
    co_await changed_.Wait();
  }
  if (lines_.empty() && failure_) failure_->Rethrow();
  std::optional<std::string> line;
  if (!lines_.empty()) {
    line = std::move(lines_.front());
    lines_.pop_front();
    waiting_ -= line->size();
  }
  co_return line;
}

}  // namespace nodepool::drivers::kubernetes
