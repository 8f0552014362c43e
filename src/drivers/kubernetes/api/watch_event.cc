#include "drivers/kubernetes/api/watch_event.h"

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

}  // namespace nodepool::drivers::kubernetes
