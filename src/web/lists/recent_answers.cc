#include "web/lists/recent_answers.h"

#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <new>
#include <string>
#include <vector>

#include "async/task.h"
#include "base/clock.h"
#include "base/text.h"

namespace nodepool::web {

namespace {

constexpr int kGzip = 15 + 16;  // the largest window, and the format
constexpr int kUsualMemory = 8;
constexpr std::size_t kOutAtATime = 16 * 1024;
// Some 0.1 ms, also for what is hard to compress.
constexpr std::size_t kAtATime = 8 * 1024;

}  // namespace

struct GzipWriter::Stream {
  Stream() {
    // Other levels take several times as long for a third less.
    int made = deflateInit2(&zlib, Z_BEST_SPEED, Z_DEFLATED, kGzip, kUsualMemory, Z_DEFAULT_STRATEGY);
    if (made != Z_OK) throw std::bad_alloc();
  }
  ~Stream() { deflateEnd(&zlib); }

  z_stream zlib{};
};

GzipWriter::GzipWriter() : stream_(std::make_unique<Stream>()) {}
GzipWriter::~GzipWriter() = default;

void GzipWriter::Write(std::string& out, std::string_view text) { Run(out, text, Z_NO_FLUSH); }

void GzipWriter::Finish(std::string& out) { Run(out, {}, Z_FINISH); }

void GzipWriter::Run(std::string& out, std::string_view text, int flush) {
  z_stream& zlib = stream_->zlib;
  // zlib reads only.
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  zlib.avail_in = static_cast<uInt>(text.size());
  do {
    std::size_t begin = out.size();
    out.resize(begin + kOutAtATime);
    zlib.next_out = reinterpret_cast<Bytef*>(out.data() + begin);
    zlib.avail_out = static_cast<uInt>(kOutAtATime);
    deflate(&zlib, flush);  // fails only for a stream that is not as zlib left it
    out.erase(out.size() - zlib.avail_out);
  } while (zlib.avail_out == 0);
}

Task<std::string> Gzipped(const std::string& text, Pace& pace) {
  GzipWriter writer;
  std::string out;
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view step = rest.substr(0, kAtATime);
    rest.remove_prefix(step.size());
    writer.Write(out, step);
    if (pace.is_due(step.size())) co_await pace.Pause();
  }
  writer.Finish(out);
  out.shrink_to_fit();
  co_return out;
}

namespace {

bool IsToken(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  auto is_token = [&](unsigned char c) {
    return std::isalnum(c) != 0 || kMarks.find(static_cast<char>(c)) != kMarks.npos;
  };
  return !text.empty() && std::ranges::all_of(text, is_token);
}

// One range of media types, e.g. "text/*;q=0.5".
struct Range {
  std::string type;
  std::string subtype;
  bool has_parameters = false;  // other than the quality
  double quality = 1;
};

std::optional<double> ParseQuality(std::string_view text) {
  double quality = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), quality);
  bool is_good = error == std::errc() && end == text.data() + text.size() && quality >= 0 && quality <= 1;
  return is_good ? std::optional(quality) : std::nullopt;
}

std::optional<Range> ParseRange(std::string_view text) {
  std::vector<std::string> parts = Split(text, ';');
  std::string_view media = Trim(parts.front());
  std::size_t slash = media.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  Range range{Lower(media.substr(0, slash)), Lower(media.substr(slash + 1))};
  bool is_any_of_some = range.type == "*" && range.subtype != "*";
  if (!IsToken(range.type) || !IsToken(range.subtype) || is_any_of_some) return std::nullopt;
  bool is_quality_known = false;
  for (auto part = parts.begin() + 1; part != parts.end(); ++part) {
    std::string_view parameter = Trim(*part);
    std::size_t equals = parameter.find('=');
    if (equals == std::string_view::npos || !IsToken(parameter.substr(0, equals))) return std::nullopt;
    if (is_quality_known) continue;  // parameters after the quality do not belong to the type
    if (Lower(parameter.substr(0, equals)) != "q") {
      range.has_parameters = true;
      continue;
    }
    std::optional<double> quality = ParseQuality(parameter.substr(equals + 1));
    if (!quality) return std::nullopt;
    range.quality = *quality;
    is_quality_known = true;
  }
  return range;
}

// How specifically the range matches a type without parameters; 0: not at all.
int Closeness(const Range& range, std::string_view type, std::string_view subtype) {
  if (range.has_parameters) return 0;
  if (range.type == "*") return 1;
  if (range.type != type) return 0;
  if (range.subtype == "*") return 2;
  return range.subtype == subtype ? 3 : 0;
}

double QualityOf(const std::vector<Range>& ranges, std::string_view media) {
  std::size_t slash = media.find('/');
  int closest = 0;
  double quality = 0;
  for (const Range& range : ranges) {
    int closeness = Closeness(range, media.substr(0, slash), media.substr(slash + 1));
    if (closeness > closest) {
      closest = closeness;
      quality = range.quality;
    }
  }
  return quality;
}

// nullopt: it cannot be parsed.
std::optional<std::vector<Range>> ParseRanges(std::string_view accept) {
  std::vector<Range> ranges;
  for (const std::string& part : Split(accept, ',')) {
    if (Trim(part).empty()) continue;
    std::optional<Range> range = ParseRange(part);
    if (!range) return std::nullopt;
    ranges.push_back(std::move(*range));
  }
  return ranges;
}

struct Coding {
  std::string name;
  double quality = 1;
};

std::optional<Coding> ParseCoding(std::string_view text) {
  std::size_t end = std::min(text.find(';'), text.size());
  Coding coding{Lower(Trim(text.substr(0, end)))};
  if (!IsToken(coding.name)) return std::nullopt;
  if (end == text.size()) return coding;
  std::string parameter = Lower(Trim(text.substr(end + 1)));
  std::optional<double> quality =
      parameter.starts_with("q=") ? ParseQuality(std::string_view(parameter).substr(2)) : std::nullopt;
  if (!quality) return std::nullopt;
  coding.quality = *quality;
  return coding;
}

}  // namespace

bool PrefersGzip(std::string_view accept_encoding) {
  std::optional<double> gzip, identity, any;
  for (const std::string& part : Split(accept_encoding, ',')) {
    if (Trim(part).empty()) continue;
    std::optional<Coding> coding = ParseCoding(part);
    if (!coding) return false;
    if (coding->name == "gzip" || coding->name == "x-gzip") gzip = coding->quality;
    if (coding->name == "identity") identity = coding->quality;
    if (coding->name == "*") any = coding->quality;
  }
  double quality = gzip.value_or(any.value_or(0));
  return quality > 0 && quality >= identity.value_or(0);
}

std::optional<std::string_view> AcceptOf(const net::HttpRequest& request) {
  auto accept = request.headers.find("accept");
  return accept == request.headers.end() ? std::nullopt : std::optional<std::string_view>(accept->second);
}

std::optional<std::string_view> ChooseType(std::optional<std::string_view> accept,
                                           std::span<const std::string_view> offers) {
  if (!accept) return offers.front();
  std::optional<std::vector<Range>> ranges = ParseRanges(*accept);
  if (!ranges) return offers.front();
  auto quality = [&](std::string_view offer) { return QualityOf(*ranges, offer); };
  auto best = std::ranges::max_element(offers, {}, quality);
  return quality(*best) > 0 ? std::optional(*best) : std::nullopt;
}

std::optional<Format> ChooseFormat(std::optional<std::string_view> accept) {
  static constexpr std::string_view kOffers[] = {"text/html", "text/plain", "application/json"};
  std::optional<std::string_view> type = ChooseType(accept, kOffers);
  if (!type) return std::nullopt;
  return *type == kOffers[2] ? Format::kJson : Format::kText;
}

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
