#include "runners/set/set_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "async/backoff.h"
#include "async/deadline.h"
#include "async/task.h"
#include "base/error.h"
#include "base/text.h"
#include "runners/context.h"
#include "runners/github/calls.h"
#include "runners/metrics.h"

namespace nodepool::runners {

namespace {

constexpr int kFailuresInARow = 3;
constexpr Duration kFirstHold = std::chrono::minutes(1);
constexpr Duration kLongestHold = std::chrono::minutes(10);
constexpr Duration kNodeHold = std::chrono::minutes(1);
constexpr int kMostDoublings = 4;

}  // namespace

void SetHealth::NoNode(std::string reason, WallTime now) {
  node_fault_ = {
      fmt::format("they get no nodes: {}", reason),
      "Check the label and its pools: `nodepool label-list` and `nodepool request-list` say what they lack"};
  node_failed_ = now;
  held_until_ = std::max(held_until_.value_or(now), now + kNodeHold);
}

void SetHealth::DidNotStart(std::string reason, WallTime now) {
  start_fault_ = {fmt::format("they do not start on their nodes: {}", reason),
                  "Try the same by hand: `nodepool exec -i KEY LABEL -- ls actions-runner`; where that "
                  "works, see the log "
                  "in .nodepool-runner on a node"};
  if (++failures_in_a_row_ < kFailuresInARow) return;
  int doublings = std::min(failures_in_a_row_ - kFailuresInARow, kMostDoublings);
  held_until_ =
      std::max(held_until_.value_or(now), now + std::min(kFirstHold * (1 << doublings), kLongestHold));
}

void SetHealth::Started() {
  failures_in_a_row_ = 0;
  start_fault_ = {};
  node_fault_ = {};
  node_failed_.reset();
  held_until_.reset();
}

void SetHealth::Deprecated(std::string version, WallTime now) {
  start_fault_ = {fmt::format("they get no jobs: the service refuses the version {} of the runner",
                              version.empty() ? "(unknown)" : version),
                  "Build an image with a newer runner; one node is tried every ten minutes"};
  failures_in_a_row_ = kFailuresInARow;
  held_until_ = now + kLongestHold;
}

std::optional<WallTime> SetHealth::HeldBackUntil(WallTime now) const {
  return held_until_ && now < *held_until_ ? held_until_ : std::nullopt;
}

bool SetHealth::LacksNodes(WallTime now) const { return node_failed_ && now - *node_failed_ <= kNodeHold; }

SetFault SetHealth::Fault(WallTime now) const {
  if (!service_fault_.text.empty()) return service_fault_;
  if (failures_in_a_row_ >= kFailuresInARow) return start_fault_;
  return LacksNodes(now) ? node_fault_ : SetFault();
}

namespace {

constexpr Duration kRemembered = std::chrono::minutes(10);
constexpr Duration kEndRemembered = std::chrono::hours(1);
constexpr std::size_t kMostJobs = 20'000;  // more are left to the figures

}  // namespace

bool KnownJobs::Add(RunnerJob job, WallTime now) {
  std::int64_t request = job.request;
  if (jobs_.size() >= kMostJobs || ended_.contains(request)) return false;
  was_nothing_ = false;
  return jobs_.try_emplace(request, Known{std::move(job), now}).second;
}

void KnownJobs::End(std::int64_t request, WallTime now) {
  Remove(request);
  if (ended_.size() >= kMostJobs) ended_.erase(ended_.begin());  // numbers grow
  ended_.insert_or_assign(request, now);
}

void KnownJobs::Remove(std::int64_t request) {
  jobs_.erase(request);
  std::erase_if(deferred_, [request](const RunnerJob& job) { return job.request == request; });
}

void KnownJobs::Compare(const sched::JobStatistics& statistics, WallTime now) {
  bool is_nothing = statistics.is_nothing();
  if (is_nothing && was_nothing_) jobs_.clear();
  was_nothing_ = is_nothing;
  std::erase_if(jobs_, [now](const auto& entry) { return now - entry.second.since > kRemembered; });
  std::erase_if(ended_, [now](const auto& entry) { return now - entry.second > kEndRemembered; });
}

std::int64_t KnownJobs::CountOf(const std::string& repository) const {
  return std::ranges::count_if(jobs_,
                               [&](const auto& entry) { return entry.second.job.repository == repository; });
}

std::vector<RunnerJob> KnownJobs::First(std::size_t limit) const {
  std::vector<RunnerJob> first;
  for (const auto& [request, known] : jobs_) {
    if (first.size() == limit) break;
    first.push_back(known.job);
  }
  return first;
}

void KnownJobs::Defer(RunnerJob job) {
  bool is_there = std::ranges::find(deferred_, job.request, &RunnerJob::request) != deferred_.end();
  if (!is_there && !is_full()) deferred_.push_back(std::move(job));
}

namespace {

constexpr Duration kVersionsPause = std::chrono::hours(24);
constexpr Duration kVersionsRetry = std::chrono::hours(1);
constexpr double kSecondsOfDay = 86'400;
constexpr int kDaysOfOldVersion = 30;

std::vector<int> NumbersOf(const std::string& version) {
  std::vector<int> numbers;
  for (const std::string& part : Split(version, '.')) {
    int number = 0;
    std::from_chars(part.data(), part.data() + part.size(), number);
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

// The age counts from the day when a newer one was first seen, whatever comes after that.
Task<> RunnerVersions::Follow() {
  for (;;) {
    std::shared_ptr<ScaleSets> service = set_.service;
    Outcome<std::string> newest = co_await Attempt(service->NewestVersion());
    bool is_new = newest && !newest->empty() && *newest != record_.newest_version;
    bool was_old = IsOlderVersion(record_.version, record_.newest_version);
    if (is_new && !(was_old && record_.newest_since)) record_.newest_since = set_.context.loop.Now();
    if (is_new) record_.newest_version = std::move(*newest);
    changed_();
    co_await set_.context.loop.SleepFor(newest ? kVersionsPause : kVersionsRetry);
  }
}

void RunnerVersions::Seen(const std::string& version) {
  if (!version.empty()) record_.version = version;
}

std::string RunnerVersions::Warning() const {
  WallTime now = set_.context.loop.Now();
  WallTime since = record_.newest_since.value_or(now);
  bool is_old = IsOlderVersion(record_.version, record_.newest_version);
  double days = is_old ? (ToSeconds(now) - ToSeconds(since)) / kSecondsOfDay : 0;
  set_.context.metrics.Set(kVersionAgeGauge, {set_.key.service, set_.key.set}, days);
  return VersionWarning(record_.version, record_.newest_version, since, now);
}

bool IsOlderVersion(const std::string& version, const std::string& other) {
  return !version.empty() && !other.empty() && NumbersOf(version) < NumbersOf(other);
}

std::string VersionWarning(const std::string& version, const std::string& newest, WallTime newer_since,
                           WallTime now) {
  if (!IsOlderVersion(version, newest)) return "";
  auto age = std::chrono::duration_cast<std::chrono::hours>(now - newer_since).count() / 24;
  std::int64_t left = kDaysOfOldVersion - age;
  std::string when =
      left > 0 ? fmt::format("in {} day{}", left, left == 1 ? "" : "s") : "from now on at any time";
  return fmt::format(
      "the runner on the nodes is {}, the newest is {}: the service refuses it {}; build the image", version,
      newest, when);
}

namespace {

constexpr Duration kConflictPause = std::chrono::seconds(5);
constexpr Duration kLongConflict = std::chrono::minutes(3);
constexpr Duration kFaultPause = std::chrono::minutes(5);  // of what an operator has to correct
constexpr Duration kRetryPause = std::chrono::seconds(5);
constexpr Duration kCloseTime = std::chrono::seconds(5);
constexpr Backoff::Settings kPollPauses{.initial = std::chrono::seconds(1), .max = std::chrono::seconds(30)};

std::vector<std::string> Sorted(std::vector<std::string> labels) {
  std::ranges::sort(labels);
  return labels;
}

std::vector<std::string> MissingIn(const std::vector<std::string>& there,
                                   const std::vector<std::string>& wanted) {
  std::vector<std::string> missing;
  for (const std::string& label : wanted) {
    auto same = [&](const std::string& other) { return Lower(other) == Lower(label); };
    if (std::ranges::none_of(there, same)) missing.push_back(label);
  }
  return missing;
}

std::string RemedyOf(const Failure& failure) {
  if (failure.verdict() == Verdict::kConflict)
    return "Stop the other program that listens to the set, or give the set another name; after a killed "
           "daemon it passes "
           "within two minutes";
  if (github::IsRefusedWith(failure, github::kUnauthorized))
    return "Correct the credentials of the service in the secure file; it is tried every five minutes, and "
           "after each reload";
  if (failure.verdict() == Verdict::kInvalid)
    return "Correct `runners` in the configuration, or permit it in the service; it is tried every five "
           "minutes";
  return "Nothing, it is tried again all the time; where it lasts, check the service and the network to it";
}

// The session, or the set, does not exist any more, or an operator has to correct something.
bool IsOver(const Failure& failure) {
  Verdict verdict = failure.verdict();
  return verdict == Verdict::kNotFound || verdict == Verdict::kConflict || verdict == Verdict::kInvalid ||
         github::IsRefusedWith(failure, github::kUnauthorized);
}

}  // namespace

SetSession::SetSession(SetContext& set, SetHealth& health, RunnerSetRecord& record, Handler handler)
    : set_(set), health_(health), record_(record), handler_(std::move(handler)) {}

Task<> SetSession::Run() {
  for (;;) {
    auto close = [this] { return Close(); };
    Task<> serve = Serve();
    Outcome<> served = co_await Attempt(WithCleanup(std::move(serve), close));
    if (served) continue;
    Duration pause = PauseAfter(served.error());
    co_await NoteState(record_.state, record_.fault);
    co_await set_.context.loop.SleepFor(pause);
  }
}

Duration SetSession::PauseAfter(const Failure& failure) {
  SteadyTime now = set_.context.loop.SteadyNow();
  std::string message = failure.message();
  bool is_conflict = failure.verdict() == Verdict::kConflict;
  if (!is_conflict) conflict_since_.reset();
  if (is_conflict && !conflict_since_) conflict_since_ = now;
  record_.state = is_conflict ? "waiting for a session" : "fault";
  bool is_fault = !is_conflict || now - *conflict_since_ >= kLongConflict;
  SetFault fault;
  if (is_fault) fault = {fmt::format("they get no jobs: {}", message), RemedyOf(failure)};
  record_.fault = fault.text;
  health_.ServiceFault(std::move(fault));
  if (ReplaceMessage(last_fault_, message)) {
    log::Level level = is_fault ? log::Level::kError : log::Level::kWarning;
    set_.logger.Write(level, fmt::format("{}: {}", set_.name(), message));
  }
  if (is_conflict) return kConflictPause;
  bool is_for_people =
      failure.verdict() == Verdict::kInvalid || github::IsRefusedWith(failure, github::kUnauthorized);
  return is_for_people ? kFaultPause : kRetryPause;
}

Task<> SetSession::NoteState(std::string state, std::string fault) {
  bool is_other = record_.state != state || record_.fault != fault || !record_.since;
  record_.state = std::move(state);
  record_.fault = std::move(fault);
  if (is_other) record_.since = set_.context.loop.Now();
  co_await handler_.write();
}

Task<> SetSession::Serve() {
  co_await EnsureSet();
  co_await ClosePredecessor();
  co_await Open();
  co_await Poll();
}

// --- The set -----------------------------------------------------------------

Task<> SetSession::EnsureSet() {
  std::shared_ptr<ScaleSets> service = set_.service;
  std::int64_t group = co_await service->GroupId(set_.settings->service.group);
  ScaleSetOrder order{.name = set_.key.set, .group = group, .labels = set_.set().labels};
  std::optional<ScaleSet> found = co_await service->FindSet(set_.key.set, group);
  adopted_ = set_.settings;
  record_.url = set_.settings->service.url;
  if (found) co_return co_await AdoptSet(*found, group);
  Outcome<ScaleSet> made = co_await Attempt(service->MakeSet(order));
  // Another one made it, or the answer to our call was lost: it is found next time.
  if (FailedWith(made, Verdict::kConflict)) throw Error(Verdict::kRetry, made.error().message());
  if (!made) made.error().Rethrow();
  record_.is_made = true;
  set_.logger.Info("{}: made its set, {}, in the service", set_.name(), made->id);
  co_await AdoptSet(*made, group);
}

Task<> SetSession::AdoptSet(const ScaleSet& found, std::int64_t group) {
  std::shared_ptr<ScaleSets> service = set_.service;
  std::vector<std::string> wanted = set_.set().labels;
  ScaleSet current = found;
  if (Sorted(current.labels) != Sorted(wanted) || !current.has_updates_disabled) {
    ScaleSetOrder order{.name = set_.key.set, .group = group, .labels = wanted};
    current = co_await service->ChangeSet(current.id, order);
  }
  std::vector<std::string> missing = MissingIn(current.labels, wanted);
  if (!missing.empty())
    throw Error(
        Verdict::kInvalid,
        fmt::format("the service leaves out the labels {} of the set, as releases before 3.18 of GitHub "
                    "Enterprise Server do with more than one: use one label, the set's name",
                    Excerpt(Join(missing, ", "), 300)));
  if (record_.scale_set != current.id) record_.session.clear();
  record_.scale_set = current.id;
  co_await handler_.write();
}

// --- The session -------------------------------------------------------------

// Of a daemon that died; it would be in our way for a minute and a half.
Task<> SetSession::ClosePredecessor() {
  if (record_.session.empty()) co_return;
  std::shared_ptr<ScaleSets> service = set_.service;
  co_await service->CloseSession(record_.scale_set, record_.session);
  record_.session.clear();
}

Task<> SetSession::Open() {
  std::shared_ptr<ScaleSets> service = set_.service;
  std::string owner = fmt::format("nodepool {} {}", set_.context.identity, set_.context.hostname);
  session_ = co_await service->OpenSession(record_.scale_set, std::move(owner));
  conflict_since_.reset();
  last_fault_.clear();
  health_.ServiceFault({});
  record_.session = session_.id;
  record_.owner = session_.owner;
  co_await NoteState("listening", "");
  set_.logger.Info("{}: listening for jobs of set {}", set_.name(), record_.scale_set);
  handler_.opened(session_.statistics);
}

Task<> SetSession::Poll() {
  Backoff pauses(kPollPauses, set_.context.random);
  std::int64_t last = 0;
  std::string last_failure;
  for (;;) {
    Outcome<> polled = co_await Attempt(PollOnce(last));
    if (polled) {
      pauses.Reset();
      last_failure.clear();
      continue;
    }
    if (IsOver(polled.error())) polled.error().Rethrow();
    if (ReplaceMessage(last_failure, polled.error().message()))
      set_.logger.Warning("{}: {}; asking again", set_.name(), polled.error().message());
    co_await set_.context.loop.SleepFor(pauses.Next());
  }
}

Task<> SetSession::PollOnce(std::int64_t& last) {
  if (adopted_ != set_.settings) co_await EnsureSet();
  std::shared_ptr<ScaleSets> service = set_.service;
  std::optional<MessageBatch> batch = co_await service->NextBatch(session_, last, handler_.capacity());
  std::int64_t id = batch ? batch->id : 0;
  co_await handler_.handle(session_, std::move(batch).value_or(MessageBatch()));
  if (id == 0) co_return;
  co_await service->Acknowledge(session_, id);
  last = id;
}

// The record keeps the session's id where it cannot be closed now, for the next daemon.
Task<> SetSession::Close() {
  if (session_.id.empty()) co_return;
  std::shared_ptr<ScaleSets> service = set_.service;
  SteadyTime deadline = set_.context.loop.SteadyNow() + kCloseTime;
  Outcome<> closed = co_await Attempt(WithDeadline(set_.context.loop, deadline, "closing a session",
                                                   service->CloseSession(session_.set, session_.id)));
  session_ = {};
  if (!closed) co_return;
  record_.session.clear();
  co_await Attempt(WithDeadline(set_.context.loop, deadline, "writing a record", handler_.write()));
}

}  // namespace nodepool::runners
