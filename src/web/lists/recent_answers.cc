#include "web/lists/recent_answers.h"

#include "base/time_text.h"
#include "web/caching.h"

namespace nodepool::web {
namespace {

constexpr Duration kFresh = std::chrono::seconds(1);
// Answers are large, and clients use few different queries.
constexpr std::size_t kMaxAnswers = 8;

// Whether the client has the answer computed at `made`. Times in headers have whole seconds; one after
// `now` is from before the clock was set back, and says nothing.
bool IsKnown(const Request& request, WallTime made, WallTime now) {
  std::optional<WallTime> known = ParseHttpDate(request.Header("if-modified-since"));
  return known && *known >= std::chrono::floor<std::chrono::seconds>(made) && *known <= now;
}

}  // namespace

const RecentAnswers::Made& RecentAnswers::Find(const std::string& key, const Make& make) {
  SteadyTime now = loop_.SteadyNow();
  auto found = made_.find(key);
  if (found != made_.end() && now < found->second.stale) return found->second;
  std::string body;
  if (found != made_.end()) body.swap(found->second.body);
  body.clear();
  std::erase_if(made_, [&](const auto& entry) { return now >= entry.second.stale; });
  if (made_.size() >= kMaxAnswers) made_.clear();
  WallTime at = loop_.Now();
  make(body, at);
  Made& made = made_[key];
  made = {at, now + kFresh, std::move(body)};
  return made;
}

Response RecentAnswers::Answer(const Request& request, const std::string& key, std::string content_type,
                               const Make& make) {
  const Made& made = Find(key, make);
  Response response;
  response.content_type = std::move(content_type);
  AddCachingHeaders(response, made.at);
  if (IsKnown(request, made.at, loop_.Now())) {
    response.status = 304;
  } else {
    response.body = made.body;
  }
  return response;
}

}  // namespace nodepool::web
