#include "web/lists/recent_answers.h"

#include <ctime>

#include "async/attempt.h"
#include "base/time_text.h"
#include "web/lists/gzip.h"
#include "web/lists/negotiation.h"

namespace nodepool::web {

namespace {

constexpr Duration kFresh = std::chrono::seconds(1);
// Answers are large, and clients use few different queries.
constexpr std::size_t kMaxAnswers = 8;

// Headers. Format and coding are chosen by the request's.
constexpr std::pair<const char*, const char*> kVary{"Vary", "Accept, Accept-Encoding"};
constexpr std::pair<const char*, const char*> kIsGzip{"Content-Encoding", "gzip"};

// Smaller ones are hardly sent any faster.
constexpr std::size_t kLeastCompressed = 2048;

// Not for those who show a token: what a client may read only with one is not compressed together with texts
// that others have chosen, whose lengths would then give it away to those who see the encrypted traffic.
bool TakesGzip(const Request& request) {
  return request.Header("authorization").empty() && PrefersGzip(request.Header("accept-encoding"));
}

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

std::optional<RecentAnswers::Made> RecentAnswers::FindFresh(const std::string& key, Form form) const {
  auto found = made_.find(key);
  if (found == made_.end() || loop_.SteadyNow() >= found->second.stale) return std::nullopt;
  const Made& made = found->second;
  bool has_form = form == Form::kPlain || made.gzip || made.body->size() < kLeastCompressed;
  return has_form ? std::optional(made) : std::nullopt;
}

std::shared_ptr<std::string> RecentAnswers::NewBody(const std::string& key) {
  auto body = std::make_shared<std::string>();
  auto former = made_.find(key);
  bool is_unused = former != made_.end() && former->second.body.use_count() == 1;
  if (is_unused) body->swap(*former->second.body);
  body->clear();
  return body;
}

// What waits for its turn has no body yet: however many clients wait, there is one beside those that are
// kept.
Task<RecentAnswers::Made> RecentAnswers::Get(std::string key, Form form, Make make) {
  if (std::optional<Made> fresh = FindFresh(key, form)) co_return *fresh;
  Gate::Pass pass = co_await making_.Enter();
  // Another client may have asked for the same.
  std::optional<Made> made = FindFresh(key, Form::kPlain);
  if (!made) made = co_await MakeNew(key, std::move(make));
  bool is_compressed = form == Form::kPlain || made->gzip || made->body->size() < kLeastCompressed;
  if (!is_compressed) made = co_await Compress(std::move(key), std::move(*made));
  co_return std::move(*made);
}

Task<RecentAnswers::Made> RecentAnswers::MakeNew(std::string key, Make make) {
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

Task<RecentAnswers::Made> RecentAnswers::Compress(std::string key, Made made) {
  Pace pace(loop_, stretch_);
  made.gzip = std::make_shared<const std::string>(co_await Gzipped(*made.body, pace));
  auto kept = made_.find(key);
  if (kept != made_.end() && kept->second.body == made.body) kept->second.gzip = made.gzip;
  co_return made;
}

Task<Response> RecentAnswers::Answer(Request request, std::string key, std::string content_type, Make make) {
  Form form = TakesGzip(request) ? Form::kGzip : Form::kPlain;
  Outcome<Made> made = co_await Attempt(Get(std::move(key), form, std::move(make)));
  if (FailedWith(made, Verdict::kRetry, Verdict::kQuota))
    co_return ErrorResponse(request, 503, made.error().message());
  if (!made) made.error().Rethrow();
  Response response;
  response.content_type = std::move(content_type);
  AddCachingHeaders(response, made->at);
  response.headers.emplace_back(kVary);
  bool is_compressed = form == Form::kGzip && made->gzip;
  if (IsKnown(request, made->at, loop_.Now())) {
    response.status = 304;
  } else {
    if (is_compressed) response.headers.emplace_back(kIsGzip);
    response.shared_body = is_compressed ? made->gzip : made->body;
  }
  co_return response;
}

bool AddCoding(net::HttpResponse& response, const Request& request) {
  response.headers.emplace_back(kVary);
  if (!TakesGzip(request)) return false;
  response.headers.emplace_back(kIsGzip);
  return true;
}

void AddCachingHeaders(net::HttpResponse& response, WallTime computed) {
  response.headers.emplace_back("Access-Control-Allow-Origin", "*");
  response.headers.emplace_back("Cache-Control", "max-age=1, public");
  response.headers.emplace_back("Last-Modified", HttpDate(computed));
  response.headers.emplace_back("Expires", HttpDate(computed + std::chrono::seconds(1)));
}

}  // namespace nodepool::web
