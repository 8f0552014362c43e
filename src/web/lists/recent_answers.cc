#include "web/lists/recent_answers.h"

#include <ctime>

#include "async/attempt.h"
#include "base/time_text.h"

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

void RecentAnswers::Clear() {
  made_.clear();
  ++generation_;
}

std::optional<RecentAnswers::Made> RecentAnswers::FindFresh(const std::string& key) const {
  auto found = made_.find(key);
  if (found == made_.end() || loop_.SteadyNow() >= found->second.stale) return std::nullopt;
  return found->second;
}

std::shared_ptr<std::string> RecentAnswers::NewBody(const std::string& key) {
  auto body = std::make_shared<std::string>();
  auto former = made_.find(key);
  bool is_unused = former != made_.end() && former->second.body.use_count() == 1;
  if (is_unused) body->swap(*former->second.body);
  body->clear();
  return body;
}

Task<RecentAnswers::Made> RecentAnswers::Get(std::string key, Make make) {
  if (std::optional<Made> fresh = FindFresh(key)) co_return *fresh;
  Gate::Pass pass = co_await making_.Enter();
  // Another client may have asked for the same.
  if (std::optional<Made> fresh = FindFresh(key)) co_return *fresh;
  SteadyTime begin = loop_.SteadyNow();
  Made made{loop_.Now(), begin + kFresh, NewBody(key)};
  std::erase_if(made_, [&](const auto& entry) { return begin >= entry.second.stale; });
  if (made_.size() >= kMaxAnswers) made_.clear();
  std::uint64_t generation = generation_;
  Pace pace(loop_, stretch_);
  co_await make(*made.body, made.at, pace);
  if (generation == generation_) made_[key] = made;
  co_return made;
}

Task<Response> RecentAnswers::Answer(Request request, std::string key, std::string content_type, Make make) {
  Outcome<Made> made = co_await Attempt(Get(std::move(key), std::move(make)));
  if (FailedWith(made, Verdict::kRetry, Verdict::kQuota))
    co_return ErrorResponse(request, 503, made.error().message());
  if (!made) made.error().Rethrow();
  Response response;
  response.content_type = std::move(content_type);
  AddCachingHeaders(response, made->at);
  if (IsKnown(request, made->at, loop_.Now())) {
    response.status = 304;
  } else {
    response.shared_body = made->body;
  }
  co_return response;
}

void AddCachingHeaders(net::HttpResponse& response, WallTime computed) {
  response.headers.emplace_back("Access-Control-Allow-Origin", "*");
  response.headers.emplace_back("Cache-Control", "max-age=1, public");
  response.headers.emplace_back("Last-Modified", HttpDate(computed));
  response.headers.emplace_back("Expires", HttpDate(computed + std::chrono::seconds(1)));
}

}  // namespace nodepool::web
