#include "web/live/events.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <utility>
#include <vector>

#include "base/text.h"
#include "web/api/api_fields.h"
#include "web/requests/request_endpoints.h"

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

std::string ResetEvent(const EventRing& ring, EventRing::Position position) {
  return fmt::format("id: {}\nevent: reset\ndata: {{}}\n\n", ring.IdBefore(position));
}

std::string BeatEvent(const EventRing& ring, EventRing::Position position) {
  return fmt::format("id: {}\nevent: beat\ndata: {{}}\n\n", ring.IdBefore(position));
}

EventStream::EventStream(std::shared_ptr<Feed> feed, Topics topics, EventRing::Position from,
                         std::string greeting, Identify identify)
    : feed_(std::move(feed)),
      topics_(topics),
      identify_(std::move(identify)),
      position_(from),
      beats_(feed_->beats),
      greeting_(std::make_shared<const std::string>(std::move(greeting))) {
  ++feed_->streams;
}

std::shared_ptr<const std::string> EventStream::Take() {
  if (greeting_) return std::exchange(greeting_, nullptr);
  std::uint64_t beats = std::exchange(beats_, feed_->beats);
  EventRing& ring = feed_->ring;
  std::optional<EventRing::Part> part = ring.Read(position_, topics_, viewer_);
  if (!part) {
    position_ = ring.end();
    return std::make_shared<const std::string>(ResetEvent(ring, position_));
  }
  position_ = part->next;
  if (!part->text->empty()) return part->text;
  if (beats_ == beats) return nullptr;
  return std::make_shared<const std::string>(BeatEvent(ring, position_));
}

Task<std::shared_ptr<const std::string>> EventStream::Next() {
  while (true) {
    if (identify_) {
      std::optional<Viewer> viewer = identify_();
      if (!viewer) co_return nullptr;
      viewer_ = std::move(*viewer);
    }
    if (std::shared_ptr<const std::string> text = Take()) co_return text;
    co_await feed_->news.Wait();
  }
}

std::optional<std::string> NodeEntry(const launcher::Launcher& launcher, const NodeId& id) {
  const store::StoredNode* node = launcher.records().nodes.Find(id);
  if (node == nullptr) return std::nullopt;
  return NodeFields().WithTimes(*node);
}

std::optional<std::string> RequestEntry(const launcher::Launcher& launcher, const RequestId& id) {
  std::optional<launcher::RequestStatus> status = launcher.FindRequest(id);
  if (!status) return std::nullopt;
  return RequestFields().WithTimes(*status);
}

std::optional<std::string> EntryOfImage(const launcher::Launcher& launcher, const ImageName& name) {
  if (!launcher.records().images.images().contains(name)) return std::nullopt;
  return ImageFields().WithTimes(EntryOf(launcher, name));
}

std::string LeaseEntryFor(const launcher::Launcher& launcher, const store::StoredLease& lease,
                          bool is_client) {
  return boost::json::serialize(LeaseFields().ToJson({lease, launcher, is_client}));
}

std::optional<std::string> BuildEntry(const launcher::Launcher& launcher, const store::BuildKey& key) {
  const auto& builds = launcher.records().images.builds();
  auto build = builds.find(key);
  if (build == builds.end()) return std::nullopt;
  return BuildFields().WithTimes(build->second);
}

std::optional<std::string> UploadEntry(const launcher::Launcher& launcher, const store::UploadKey& key) {
  const auto& uploads = launcher.records().images.uploads();
  auto upload = uploads.find(key);
  if (upload == uploads.end()) return std::nullopt;
  return UploadFields().WithTimes(upload->second);
}

std::string PathOf(const store::BuildKey& key) { return key.image.value + "/" + key.build.value; }

std::string PathOf(const store::UploadKey& key) {
  return PathOf(key.build) + "/" + key.provider.value + "/" + key.upload.value;
}

Published::Entries ProviderEntries(const launcher::Launcher& launcher) {
  Published::Entries entries;
  for (launcher::ProviderStatus& provider : launcher.ClusterProviders()) {
    provider.next_start.reset();
    entries[provider.name.value] = ProviderFields().WithTimes(provider);
  }
  return entries;
}

Published::Entries ComponentEntries(const store::Caches& records) {
  Published::Entries entries;
  for (const ComponentEntry& component : records.components.all()) {
    entries[component.first] = ComponentFields().WithTimes(component);
  }
  return entries;
}

Published::Entries JobEntries(const store::Caches& records) {
  Published::Entries entries;
  for (const auto& [id, rule] : records.jobs.rules()) {
    entries[id.value] = JobFields().WithTimes({rule, records.nodes, records.jobs});
  }
  return entries;
}

Published::Entries RunnerEntries(const launcher::Launcher& launcher) {
  Published::Entries entries;
  for (const listing::RunnerSetRow& set : listing::RunnerSets(launcher.records().runners))
    entries[set.key.str()] = RunnerFields().WithTimes(set);
  return entries;
}

Published::Entries RunnerJobEntries(const launcher::Launcher& launcher) {
  Published::Entries entries;
  for (const listing::RunnerJobRow& job : RunnerJobsOf(launcher))
    entries[job.set + "/" + job.id] = RunnerJobFields().WithTimes(job);
  return entries;
}

Published::Entries ProblemEntries(const launcher::Launcher& launcher) {
  Published::Entries entries;
  for (const listing::Problem& problem : launcher.Problems())
    entries[problem.id()] = ProblemFields().WithTimes(problem);
  return entries;
}

void Published::Replace(Entries entries, const See& see) {
  Entries before = std::exchange(entries_, std::move(entries));
  for (const auto& [key, json] : before) {
    if (!entries_.contains(key)) see(key, nullptr);
  }
  for (const auto& [key, json] : entries_) {
    auto known = before.find(key);
    if (known == before.end() || known->second != json) see(key, &json);
  }
}

void Published::Set(const std::string& key, std::optional<std::string> json, const See& see) {
  if (!json) {
    if (entries_.erase(key) > 0) see(key, nullptr);
    return;
  }
  auto [entry, is_new] = entries_.try_emplace(key);
  if (!is_new && entry->second == *json) return;
  entry->second = std::move(*json);
  see(key, &entry->second);
}

namespace {

constexpr Duration kFlushInterval = std::chrono::milliseconds(50);
constexpr Duration kSurveyInterval = std::chrono::milliseconds(500);
constexpr Duration kProblemsInterval = std::chrono::seconds(2);
// More requests than an operator reads; the reasons of the others are in /api/v1/requests.
constexpr std::size_t kMaxWaits = 500;

std::string GoneEntry(const std::string& key) {
  return boost::json::serialize(boost::json::object{{"id", key}, {"is_gone", true}});
}

void SeeNothing(const std::string&, const std::string*) {}

}  // namespace

RecordEvents::RecordEvents(Loop& loop, const launcher::Launcher& launcher, Feed& feed)
    : loop_(loop), launcher_(launcher), feed_(feed), flush_(loop, [this] { Flush(); }), survey_(loop, [this] {
        Survey();
      }) {}

void RecordEvents::Start() {
  if (is_started()) return;
  const store::Caches& records = launcher_.records();
  subscriptions_.push_back(records.nodes.OnChange([this](const NodeId& id, const auto*, const auto*) {
    nodes_.insert(id);
    Wake();
  }));
  subscriptions_.push_back(records.requests.OnChange([this](const RequestId& id, const auto*, const auto*) {
    requests_.insert(id);
    Wake();
  }));
  subscriptions_.push_back(records.images.OnChange([this](const ImageName& name) {
    images_.insert(name);
    Wake();
  }));
  subscriptions_.push_back(
      records.images.OnBuild([this](const store::BuildKey& key, const auto*, const auto*) {
        builds_.insert(key);
        Wake();
      }));
  subscriptions_.push_back(
      records.images.OnUpload([this](const store::UploadKey& key, const auto*, const auto*) {
        uploads_.insert(key);
        Wake();
      }));
  subscriptions_.push_back(records.leases.OnChange(
      [this](const LeaseId&, const store::StoredLease* before, const store::StoredLease* after) {
        LeaseChanged(after != nullptr ? after : before);
        Wake();
      }));
  // What there is now is what later changes are compared with; it is no news itself.
  for (const ImageName& name : records.images.images())
    published_[Topic::kImages].Set(name.value, EntryOfImage(launcher_, name), &SeeNothing);
  CompareSmallResources(false);
  CompareProblems(false);
  CompareWaits();
  // The first comparison takes all that wait for changed.
  requests_.clear();
  survey_.SetFor(loop_.SteadyNow() + kSurveyInterval);
}

void RecordEvents::Stop() {
  subscriptions_.clear();
  flush_.Cancel();
  survey_.Cancel();
  nodes_.clear();
  requests_.clear();
  images_.clear();
  leases_.clear();
  waits_.clear();
  published_.clear();
  builds_.clear();
  uploads_.clear();
}

void RecordEvents::Wake() {
  if (!flush_.is_set()) flush_.SetFor(std::max(loop_.SteadyNow(), last_flush_ + kFlushInterval));
}

void RecordEvents::Flush() {
  last_flush_ = loop_.SteadyNow();
  EncodeNodes();
  EncodeRequests();
  EncodeImages();
  EncodeBuilds();
  EncodeUploads();
  EncodeLeases();
  feed_.news.NotifyAll();
}

void RecordEvents::Survey() {
  survey_.SetFor(loop_.SteadyNow() + kSurveyInterval);
  if (feed_.streams == 0) return;
  EventRing::Position before = feed_.ring.end();
  CompareSmallResources(true);
  if (loop_.SteadyNow() >= next_problems_) CompareProblems(true);
  CompareWaits();
  if (!requests_.empty()) Wake();
  if (feed_.ring.end() != before) feed_.news.NotifyAll();
}

void RecordEvents::Report(Topic topic, const std::string& key, const std::string* json) {
  if (json != nullptr) {
    feed_.ring.Append(topic, *json, loop_.SteadyNow());
  } else {
    feed_.ring.Append(topic, GoneEntry(key), loop_.SteadyNow());
  }
}

Published::See RecordEvents::Reporter(Topic topic, bool is_reported) {
  if (!is_reported) return &SeeNothing;
  return [this, topic](const std::string& key, const std::string* json) { Report(topic, key, json); };
}

void RecordEvents::LeaseChanged(const store::StoredLease* lease) {
  if (lease != nullptr) leases_.insert_or_assign(lease->id, lease->record.client);
}

// An entry shows its request's reasons for waiting and its nodes, so it changes with them.
void RecordEvents::EncodeLeases() {
  for (const auto& [id, client] : std::exchange(leases_, {})) {
    const store::StoredLease* lease = launcher_.records().leases.Find(id);
    for (bool is_client : {true, false}) {
      Audience audience{client, is_client};
      std::string json = lease == nullptr ? GoneEntry(id.value) : LeaseEntryFor(launcher_, *lease, is_client);
      feed_.ring.Append(Topic::kLeases, json, loop_.SteadyNow(), std::move(audience));
    }
  }
}

void RecordEvents::EncodeNodes() {
  for (const NodeId& id : std::exchange(nodes_, {})) {
    LeaseChanged(launcher_.records().leases.Holding(id));
    std::optional<std::string> json = NodeEntry(launcher_, id);
    Report(Topic::kNodes, id.value, json ? &*json : nullptr);
  }
}

void RecordEvents::EncodeRequests() {
  for (const RequestId& id : std::exchange(requests_, {})) {
    LeaseChanged(launcher_.records().leases.WaitingFor(id));
    std::optional<std::string> json = RequestEntry(launcher_, id);
    Report(Topic::kRequests, id.value, json ? &*json : nullptr);
  }
}

void RecordEvents::EncodeImages() {
  for (const ImageName& name : std::exchange(images_, {}))
    published_[Topic::kImages].Set(name.value, EntryOfImage(launcher_, name), Reporter(Topic::kImages, true));
}

void RecordEvents::EncodeBuilds() {
  for (const store::BuildKey& key : std::exchange(builds_, {})) {
    std::optional<std::string> json = BuildEntry(launcher_, key);
    Report(Topic::kBuilds, PathOf(key), json ? &*json : nullptr);
  }
}

void RecordEvents::EncodeUploads() {
  for (const store::UploadKey& key : std::exchange(uploads_, {})) {
    std::optional<std::string> json = UploadEntry(launcher_, key);
    Report(Topic::kUploads, PathOf(key), json ? &*json : nullptr);
  }
}

void RecordEvents::CompareSmallResources(bool is_reported) {
  auto compare = [&](Topic topic, Published::Entries entries) {
    published_[topic].Replace(std::move(entries), Reporter(topic, is_reported));
  };
  const store::Caches& records = launcher_.records();
  compare(Topic::kProviders, ProviderEntries(launcher_));
  compare(Topic::kComponents, ComponentEntries(records));
  compare(Topic::kJobs, JobEntries(records));
  compare(Topic::kRunners, RunnerEntries(launcher_));
  compare(Topic::kRunnerJobs, RunnerJobEntries(launcher_));
  compare(Topic::kStatus, {{"launcher", Status()}});
}

// While ZooKeeper is away, those last seen remain.
void RecordEvents::CompareProblems(bool is_reported) {
  next_problems_ = loop_.SteadyNow() + kProblemsInterval;
  if (!launcher_.records().synced()) return;
  published_[Topic::kProblems].Replace(ProblemEntries(launcher_), Reporter(Topic::kProblems, is_reported));
}

// Requests are reported again whose reasons for waiting have changed.
void RecordEvents::CompareWaits() {
  std::map<RequestId, std::size_t> now;
  const store::Caches& records = launcher_.records();
  for (RequestState state : {RequestState::kRequested, RequestState::kPending}) {
    for (const RequestId& id : records.requests.InState(state)) {
      if (now.size() >= kMaxWaits) break;
      std::size_t hash = HashText(RequestEntry(launcher_, id).value_or(""));
      now.emplace(id, hash);
      auto known = waits_.find(id);
      if (known == waits_.end() || known->second != hash) requests_.insert(id);
    }
  }
  waits_ = std::move(now);
}

std::string RecordEvents::Status() const {
  bool is_ready = launcher_.is_ready();
  boost::json::object status{{"is_complete", launcher_.records().synced()}, {"is_ready", is_ready}};
  status["fault"] = is_ready ? boost::json::value() : boost::json::value(launcher_.WhyNotReady());
  return boost::json::serialize(status);
}

}  // namespace nodepool::web
