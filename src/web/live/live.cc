#include "web/live/live.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "launcher/stats/stats_metrics.h"
#include "web/lists/recent_answers.h"
#include "web/live/events.h"

namespace nodepool::web {

namespace {

namespace json = boost::json;

constexpr std::size_t kMaxTimes = 2000;
constexpr std::size_t kMaxProviders = 100;

void AddTime(std::vector<double>& times, Duration took) {
  if (times.size() < kMaxTimes) times.push_back(std::max(0.0, std::chrono::duration<double>(took).count()));
}

json::value ToJson(const Percentiles& of) {
  return json::object{{"count", of.count}, {"p50", of.p50}, {"p95", of.p95}, {"p99", of.p99}};
}

json::value ToJson(const std::map<ProviderName, Launches>& launches) {
  json::object by_provider;
  for (const auto& [name, of] : launches)
    by_provider[name.value] = json::object{{"ready", of.ready}, {"failed", of.failed}, {"errors", of.errors}};
  return by_provider;
}

json::object ToJson(const CountsByState& counts) {
  json::object by_state;
  for (const auto& [state, count] : counts) by_state[state] = count;
  return by_state;
}

JsonType PercentilesType() {
  return ObjectOf({{"count", Whole(), "how many have ended in the interval"},
                   {"p50", Number(), "half took at most so many seconds"},
                   {"p95", Number(), "95 of 100"},
                   {"p99", Number(), "99 of 100"}});
}

JsonType LaunchesType() {
  return MapOf(ObjectOf(
      {{"ready", Whole(), "nodes that became ready"},
       {"failed", Whole(), "nodes that were given up"},
       {"errors", Whole(), "attempts of this launcher that failed, also where a later one was good"}}));
}

}  // namespace

Percentiles PercentilesOf(std::vector<double> seconds) {
  if (seconds.empty()) return {};
  std::ranges::sort(seconds);
  auto at = [&](double share) {
    auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(seconds.size())));
    return seconds[rank - 1];
  };
  return {seconds.size(), at(0.50), at(0.95), at(0.99)};
}

void SampleSeries::AddWait(Duration took) { AddTime(waits_, took); }

void SampleSeries::AddLaunch(const ProviderName& provider, Duration took) {
  AddTime(launches_, took);
  if (Launches* launches = Of(provider)) ++launches->ready;
}

void SampleSeries::AddFailedLaunch(const ProviderName& provider) {
  if (Launches* launches = Of(provider)) ++launches->failed;
}

Launches* SampleSeries::Of(const ProviderName& provider) {
  auto found = by_provider_.find(provider);
  if (found != by_provider_.end()) return &found->second;
  return by_provider_.size() < kMaxProviders ? &by_provider_[provider] : nullptr;
}

void SampleSeries::CountErrors(const std::map<ProviderName, double>& now) {
  for (const auto& [provider, errors] : now) {
    int more = static_cast<int>(errors - launch_errors_[provider]);
    if (more <= 0) continue;
    if (Launches* launches = Of(provider)) launches->errors += more;
  }
  launch_errors_ = now;
}

const Sample& SampleSeries::Close(WallTime now, Level level) {
  Sample sample;
  sample.at = now;
  sample.waits = PercentilesOf(std::exchange(waits_, {}));
  sample.launches = PercentilesOf(std::exchange(launches_, {}));
  CountErrors(level.launch_errors);
  sample.by_provider = std::exchange(by_provider_, {});
  sample.api_calls = level.api_calls - std::exchange(api_calls_, level.api_calls);
  sample.api_failures = level.api_failures - std::exchange(api_failures_, level.api_failures);
  sample.level = std::move(level);
  samples_.push_back(std::move(sample));
  if (samples_.size() > capacity_) samples_.pop_front();
  return samples_.back();
}

const FieldTable<Sample>& SampleFields() {
  static const FieldTable<Sample> fields({
      {{"at", Number(), "end of the interval, in seconds since the epoch"},
       [](const Sample& s) { return json::value(ToSeconds(s.at)); }},
      {{"nodes", MapOf(Whole()), "number of nodes by state"},
       [](const Sample& s) { return json::value(ToJson(s.level.nodes)); }},
      {{"nodes_by_provider", MapOf(MapOf(Whole())), "number of nodes by provider and state"},
       [](const Sample& s) {
         json::object by_provider;
         for (const auto& [name, counts] : s.level.nodes_by_provider)
           by_provider[name.value] = ToJson(counts);
         return json::value(std::move(by_provider));
       }},
      {{"requests_waiting", Whole(), "neither fulfilled nor failed"},
       [](const Sample& s) { return json::value(s.level.requests_waiting); }},
      {{"waits", PercentilesType(), "of requests: from their creation until they were fulfilled"},
       [](const Sample& s) { return ToJson(s.waits); }},
      {{"launch_times", PercentilesType(), "of nodes: until they were ready"},
       [](const Sample& s) { return ToJson(s.launches); }},
      {{"launches", LaunchesType(), "that have ended, by provider"},
       [](const Sample& s) { return ToJson(s.by_provider); }},
      {{"api_calls", Number(), "of clouds, by this launcher"},
       [](const Sample& s) { return json::value(s.api_calls); }},
      {{"api_failures", Number(), "those without an answer"},
       [](const Sample& s) { return json::value(s.api_failures); }},
  });
  return fields;
}

namespace {

constexpr Duration kInterval = std::chrono::seconds(10);
constexpr int kIntervalsInAMinute = 6;
constexpr std::size_t kIntervalsInAnHour = 360;
constexpr std::size_t kMinutesInADay = 1440;
constexpr std::size_t kMaxProvidersCounted = 100;

constexpr NodeState kStates[] = {NodeState::kBuilding, NodeState::kReady, NodeState::kInUse,
                                 NodeState::kUsed,     NodeState::kHold,  NodeState::kDeleting,
                                 NodeState::kFailed};

}  // namespace

Sampler::Sampler(Loop& loop, const launcher::Launcher& launcher, const metrics::Prometheus& prometheus,
                 std::function<void(const Sample&)> added)
    : loop_(loop),
      launcher_(launcher),
      prometheus_(prometheus),
      added_(std::move(added)),
      hour_(kIntervalsInAnHour),
      day_(kMinutesInADay),
      next_(loop.SteadyNow() + kInterval),
      tick_(loop, [this] { Tick(); }) {
  const store::Caches& records = launcher.records();
  for (const auto& [id, node] : records.nodes.all()) Count(&node.record, 1);
  subscriptions_.push_back(records.nodes.OnChange([this](const NodeId&, const auto* before,
                                                         const auto* after) {
    NodeChanged(before != nullptr ? &before->record : nullptr, after != nullptr ? &after->record : nullptr);
  }));
  subscriptions_.push_back(
      records.requests.OnChange([this](const RequestId&, const auto* before, const auto* after) {
        if (after != nullptr) RequestChanged(before, *after);
      }));
  tick_.SetFor(next_);
}

void Sampler::Count(const Node* node, std::ptrdiff_t by) {
  if (node == nullptr || !node->state || std::ranges::find(kStates, *node->state) == std::end(kStates))
    return;
  CountsByState& counts = nodes_by_provider_[node->provider];
  std::size_t& count = counts[ToString(*node->state)];
  count += static_cast<std::size_t>(by);
  if (count == 0) counts.erase(ToString(*node->state));
  if (counts.empty()) nodes_by_provider_.erase(node->provider);
}

void Sampler::NodeChanged(const Node* before, const Node* after) {
  Count(before, -1);
  Count(after, 1);
  bool was_building = before != nullptr && before->state == NodeState::kBuilding;
  if (!was_building || after == nullptr || after->state == NodeState::kBuilding) return;
  bool is_ready = after->state == NodeState::kReady || after->state == NodeState::kInUse;
  bool has_failed = after->state == NodeState::kFailed || after->state == NodeState::kAborted;
  for (SampleSeries* series : {&hour_, &day_}) {
    if (is_ready) series->AddLaunch(after->provider, after->state_time - before->state_time);
    if (has_failed) series->AddFailedLaunch(after->provider);
  }
}

void Sampler::RequestChanged(const store::StoredRequest* before, const store::StoredRequest& after) {
  const NodeRequest& record = after.record;
  bool is_fulfilled = record.state == RequestState::kFulfilled;
  if (!is_fulfilled || before == nullptr || before->record.state == record.state) return;
  if (record.requestor == kMinReadyRequestor) return;
  for (SampleSeries* series : {&hour_, &day_}) series->AddWait(record.state_time - CreationOf(after));
}

Level Sampler::Now() const {
  const store::Caches& records = launcher_.records();
  Level level;
  for (NodeState state : kStates) level.nodes[ToString(state)] = records.nodes.InState(state).size();
  level.requests_waiting = records.requests.InState(RequestState::kRequested).size() +
                           records.requests.InState(RequestState::kPending).size();
  for (const auto& [provider, counts] : nodes_by_provider_) {
    if (level.nodes_by_provider.size() >= kMaxProvidersCounted) break;
    level.nodes_by_provider.emplace(provider, counts);
  }
  for (const auto& [provider, errors] : prometheus_.SumsByFirst(launcher::stats::kProviderLaunch, "error."))
    level.launch_errors.emplace(ProviderName(provider), errors);
  level.api_calls = prometheus_.Sum(launcher::stats::kApiCall, "attempted");
  level.api_failures = prometheus_.Sum(launcher::stats::kApiCall, "failed");
  return level;
}

void Sampler::Tick() {
  next_ += kInterval;
  if (next_ <= loop_.SteadyNow()) next_ = loop_.SteadyNow() + kInterval;  // the host slept
  tick_.SetFor(next_);
  if (!launcher_.records().synced()) return;
  Level level = Now();
  if (++ticks_ % kIntervalsInAMinute == 0) day_.Close(loop_.Now(), level);
  added_(hour_.Close(loop_.Now(), std::move(level)));
}

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
