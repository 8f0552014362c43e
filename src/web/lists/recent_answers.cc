#include "web/lists/recent_answers.h"

#include "web/caching.h"

namespace nodepool::web {
namespace {

constexpr Duration kFresh = std::chrono::seconds(1);
// They are large, and clients ask for few different ones.
constexpr std::size_t kMostKept = 8;

// Whether the client has what was computed at `made`. Times have whole seconds there.
bool IsKnown(const Request& request, WallTime made) {
  std::optional<WallTime> known = ParseHttpDate(request.Header("if-modified-since"));
  return known && *known >= std::chrono::floor<std::chrono::seconds>(made);
}

}  // namespace

const RecentAnswers::Made& RecentAnswers::Find(const std::string& key, const Make& make) {
  WallTime now = loop_.Now();
  auto found = made_.find(key);
  if (found != made_.end() && now - found->second.at < kFresh) return found->second;
  std::string body;
  if (found != made_.end()) body.swap(found->second.body);
  body.clear();
  std::erase_if(made_, [&](const auto& entry) { return now - entry.second.at >= kFresh; });
  if (made_.size() >= kMostKept) made_.clear();
  make(body, now);
  Made& made = made_[key];
  made = {now, std::move(body)};
  return made;
}

Response RecentAnswers::Answer(const Request& request, const std::string& key, std::string content_type,
                               const Make& make) {
  const Made& made = Find(key, make);
  Response response;
  response.content_type = std::move(content_type);
  AddCachingHeaders(response, made.at);
  if (IsKnown(request, made.at)) {
    response.status = 304;
  } else {
    response.body = made.body;
  }
  return response;
}

}  // namespace nodepool::web
