#include "web/live/live.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "web/lists/recent_answers.h"

namespace nodepool::web {

namespace {

constexpr Duration kBeat = std::chrono::seconds(10);
constexpr int kLonelyBeats = 60;
// A client loads its lists at about the same time, and they may be as old as an answer that is given again.
constexpr Duration kOverlap = std::chrono::seconds(5);

std::string EpochAt(WallTime now) {
  return fmt::format("{:x}", std::chrono::floor<std::chrono::milliseconds>(now.time_since_epoch()).count());
}

}  // namespace

Live::Live(Loop& loop, const launcher::Launcher& launcher, const metrics::Prometheus& prometheus,
           std::shared_ptr<RecentAnswers> recent)
    : loop_(loop),
      recent_(std::move(recent)),
      feed_(std::make_shared<Feed>(EventRing(EpochAt(loop.Now())))),
      records_(loop, launcher, *feed_),
      changes_(loop, launcher, [this](const ChangeEntry& change) { Changed(change); }),
      sampler_(loop, launcher, prometheus, [this](const Sample& sample) { Sampled(sample); }),
      beat_(loop, [this] { Beat(); }) {}

void Live::Follow() {
  lonely_beats_ = 0;
  if (records_.is_started()) return;
  recent_->Clear();
  records_.Start();
  followed_since_ = loop_.Now();
  beat_.SetFor(loop_.SteadyNow() + kBeat);
}

std::shared_ptr<EventStream> Live::Open(Topics topics, const std::string& last_id,
                                        EventStream::Identify identify) {
  Follow();
  const EventRing& ring = feed_->ring;
  std::optional<EventRing::Position> from = ring.After(last_id);
  EventRing::Position begin =
      from.value_or(last_id.empty() ? ring.Since(loop_.SteadyNow() - kOverlap) : ring.end());
  WallTime now = loop_.Now();
  std::string greeting = fmt::format(
      "retry: 1000\nid: {}\nevent: hello\ndata: "
      "{{\"now\":{:.3f},\"complete_since\":{:.3f},\"status\":{}}}\n\n",
      ring.IdBefore(begin), ToSeconds(now), ToSeconds(std::max(now - kOverlap, followed_since_)),
      records_.Status());
  if (!last_id.empty() && !from) greeting += ResetEvent(ring, begin);
  return std::make_shared<EventStream>(feed_, topics, begin, std::move(greeting), std::move(identify));
}

void Live::Beat() {
  lonely_beats_ = feed_->streams == 0 ? lonely_beats_ + 1 : 0;
  if (lonely_beats_ >= kLonelyBeats) {
    records_.Stop();
    feed_->ring.Clear();
    return;
  }
  ++feed_->beats;
  feed_->news.NotifyAll();
  beat_.SetFor(loop_.SteadyNow() + kBeat);
}

void Live::Changed(const ChangeEntry& change) {
  if (!records_.is_started()) return;
  feed_->ring.Append(Topic::kChanges, ChangeFields().WithTimes(change), loop_.SteadyNow());
  records_.NotifySoon();
}

void Live::Sampled(const Sample& sample) {
  if (!records_.is_started()) return;
  feed_->ring.Append(Topic::kSamples, SampleFields().WithTimes(sample), loop_.SteadyNow());
  feed_->news.NotifyAll();
}

namespace {

constexpr std::size_t kDefaultChanges = 200;

// The number in a parameter, or the default. Error(kInvalid): it is none.
Expected<std::size_t> NumberIn(const Request& request, const std::string& name, std::size_t otherwise) {
  const std::string& text = request.Parameter(name);
  if (text.empty()) return otherwise;
  std::size_t number = 0;
  auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size())
    return Unexpected(Verdict::kInvalid, name + " is a number.");
  return number;
}

std::optional<Viewer> ViewerBehind(const Access& access, const Caller& caller) {
  std::optional<Caller> now = access.Renewed(caller);
  if (!now) return std::nullopt;
  return Viewer{now->name(), now->may(config::Scope::kOperate)};
}

Task<Response> Events(std::shared_ptr<Live> live, Access& access, Request request) {
  Expected<Topics> topics = ReadTopics(request.Parameter("topics"));
  if (!topics) co_return ErrorResponse(request, 400, topics.error().message());
  EventStream::Identify identify;
  if (Contains(*topics, Topic::kLeases) || !access.IsOpen(request)) {
    std::expected<Caller, Response> caller = co_await access.Identify(request);
    if (!caller) co_return std::move(caller.error());
    identify = [&access, bearer = *caller] { return ViewerBehind(access, bearer); };
  }
  const std::string& sent_again = request.Header("last-event-id");
  Response response;
  response.content_type = "text/event-stream";
  response.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  const std::string& last = sent_again.empty() ? request.Parameter("last") : sent_again;
  response.stream = live->Open(*topics, last, std::move(identify));
  co_return response;
}

Response JsonResponse(std::string body, WallTime now) {
  Response response;
  response.content_type = "application/json";
  response.body = std::move(body);
  AddCachingHeaders(response, now);
  return response;
}

Response Changes(const Live& live, const Request& request, WallTime now) {
  Expected<std::size_t> limit = NumberIn(request, "limit", kDefaultChanges);
  if (!limit) return ErrorResponse(request, 400, limit.error().message());
  std::string body = R"({"changes":[)";
  for (const ChangeEntry* change : live.changes().Latest(*limit)) {
    if (body.back() != '[') body += ',';
    body += ChangeFields().WithTimes(*change);
  }
  return JsonResponse(body + "]}", now);
}

void AppendSamples(std::string& body, const SampleSeries& series, WallTime since) {
  body += '[';
  for (const Sample& sample : series.samples()) {
    if (sample.at <= since) continue;
    if (body.back() != '[') body += ',';
    body += SampleFields().WithTimes(sample);
  }
  body += ']';
}

Response Samples(const Live& live, const Request& request, WallTime now) {
  std::size_t all = std::numeric_limits<std::int32_t>::max();
  Expected<std::size_t> seconds = NumberIn(request, "since", all);
  if (!seconds) return ErrorResponse(request, 400, seconds.error().message());
  WallTime since = now - std::chrono::seconds(std::min(*seconds, all));
  std::string body = R"({"hour":)";
  AppendSamples(body, live.sampler().hour(), since);
  body += R"(,"day":)";
  AppendSamples(body, live.sampler().day(), since);
  return JsonResponse(body + "}", now);
}

EndpointDoc EventsDoc() {
  return {"What changes, as Server-Sent Events (http.md PAGE-1).",
          {{"topics",
            "names of resources, `leases`, `changes`, `samples` and `status`, joined with commas; all but "
            "`leases` if it "
            "is missing. For `leases` a token is needed, and the events are about those that /api/v1/leases "
            "shows it",
            Text()},
           {"last", "the id of the last event that was received, as the header Last-Event-ID", Text()}},
          {{"text/event-stream", Text()}},
          {400, 503}};
}

EndpointDoc ChangesDoc() {
  return {"What changed lately, in words, the latest first.",
          {{"limit", "at most so many; 200 if it is missing", Whole()}},
          {{"application/json",
            ObjectOf({{"changes", ListOf(ChangeFields().type()), "as many as were asked for"}})}},
          {400}};
}

EndpointDoc SamplesDoc() {
  return {"Samples of the cluster, for charts, the oldest first.",
          {{"since", "only those of so many last seconds", Whole()}},
          {{"application/json",
            ObjectOf({{"hour", ListOf(SampleFields().type()), "one for each ten seconds of the last hour"},
                      {"day", ListOf(SampleFields().type()), "one for each minute of the last day"}})}},
          {400}};
}

}  // namespace

std::vector<Endpoint> LiveEndpoints(Loop& loop, std::shared_ptr<Live> live, Access& access) {
  // A stream of a token that is withdrawn ends at once.
  auto changed = std::make_shared<Subscription>(access.OnChange([live] { live->Identify(); }));
  auto events = [live, &access, changed](Request request) {
    return Events(live, access, std::move(request));
  };
  auto changes = [live, &loop](const Request& request) { return Changes(*live, request, loop.Now()); };
  auto samples = [live, &loop](const Request& request) { return Samples(*live, request, loop.Now()); };
  return {{"GET", "/api/v1/events", events, EventsDoc()},
          {"GET", "/api/v1/changes", Pure(changes), ChangesDoc()},
          {"GET", "/api/v1/samples", Pure(samples), SamplesDoc()}};
}

}  // namespace nodepool::web
