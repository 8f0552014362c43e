#include "web/live/record_events.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/text_hash.h"
#include "web/live/entries.h"

namespace nodepool::web {
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
  for (const ImageName& name : records.images.images())
    published_[Topic::kImages].Set(name.value, EntryOfImage(launcher_, name), &SeeNothing);
  CompareSmallResources(false);
  CompareProblems(false);
  CompareWaits();
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
