#include "runners/set/run_watch.h"

#include <utility>

#include "async/attempt.h"

namespace nodepool::runners {
namespace {

constexpr Duration kSoon = std::chrono::seconds(2);
constexpr Duration kReconnect = std::chrono::seconds(10);
constexpr Duration kLookUp = std::chrono::seconds(60);

}  // namespace

RunWatch::RunWatch(SetContext& set, RunId id, const RunnerRun& run, sched::RunView& seen,
                   std::function<void()> changed)
    : set_(set),
      id_(std::move(id)),
      run_(run),
      seen_(seen),
      changed_(std::move(changed)),
      tasks_(set.context.loop, set.logger) {}

RunWatch::~RunWatch() = default;

Task<> RunWatch::Begin() {
  place_ = co_await FindPlace();
  if (place_) {
    tasks_.Spawn("watch a runner", Watch(*place_));
    tasks_.Spawn("look up a runner", LookUp());
  } else {
    seen_.has_failed = true;
  }
}

Task<> RunWatch::End() {
  tasks_.CancelAll();
  co_await tasks_.Join();
}

// nullopt: the node has no usable record.
Task<std::optional<RunnerPlace>> RunWatch::FindPlace() {
  std::optional<store::StoredNode> node = co_await set_.context.store.nodes.Read(run_.node);
  if (!node) co_return std::nullopt;
  Expected<net::SshNode> ssh = net::SshNodeOf(run_.node, node->record);
  if (!ssh) {
    complaint_ = ssh.error().message();
    co_return std::nullopt;
  }
  const config::RunnerSet& set = set_.set();
  if (!set.user.empty()) ssh->user = set.user;
  RunnerProgram program = set_.settings->service.kind == config::RunnerServiceKind::kForgejo
                              ? RunnerProgram::kForgejo
                              : RunnerProgram::kGithub;
  co_return RunnerPlace{*ssh, set_.settings->service.ssh_key, {id_, set.folder, set.user == "root", program}};
}

Task<> RunWatch::HandOver(std::string configuration) {
  std::shared_ptr<NodeSession> session = session_;
  if (!session || !seen_.is_ready) co_return;
  seen_.is_handed_over = true;
  co_await session->HandOver(std::move(configuration));
}

Task<> RunWatch::EndRunner() {
  if (!place_) co_return;
  Outcome<> ended = co_await Attempt(set_.context.nodes.EndRunner(*place_));
  if (!ended) set_.logger.Debug("{}: {}", set_.name(), ended.error().message());
}

// After a session that has ended comes the next one; the runner does not notice.
Task<> RunWatch::Watch(RunnerPlace place) {
  for (;;) {
    Outcome<> watched = co_await Attempt(WatchOnce(place));
    if (!watched) complaint_ = watched.error().message();
    session_.reset();
    seen_.is_ready = false;
    if (seen_.status || seen_.has_failed) co_return;
    if (!seen_.unreachable_since) seen_.unreachable_since = Now();
    changed_();
    bool was_started = seen_.is_started || *run_.state > RunState::kRegistered;
    co_await set_.context.loop.SleepFor(was_started ? kReconnect : kSoon);
  }
}

Task<> RunWatch::WatchOnce(RunnerPlace place) {
  std::shared_ptr<NodeSession> session = set_.context.nodes.Open(std::move(place));
  session_ = session;
  for (;;) {
    std::optional<NodeReport> report = co_await session->Next();
    complaint_ = session->Complaint();
    if (!report) co_return;
    seen_.unreachable_since.reset();
    Take(*report);
    changed_();
  }
}

void RunWatch::Take(const NodeReport& report) {
  switch (report.kind) {
    case NodeReport::Kind::kReady:
      seen_.is_ready = true;
      seen_.is_handed_over = false;
      break;
    case NodeReport::Kind::kStarted:
      seen_.is_ready = false;
      seen_.is_started = true;
      break;
    case NodeReport::Kind::kOnline:
      if (!std::exchange(seen_.is_online, true)) online_time_ = Now();
      break;
    case NodeReport::Kind::kWorker:
      seen_.has_worker = true;
      break;
    case NodeReport::Kind::kEnded:
      seen_.status = report.status;
      break;
    case NodeReport::Kind::kRefused:
      seen_.has_failed = true;
      complaint_ = report.text;
      break;
    case NodeReport::Kind::kDeprecated:
      is_deprecated_ = true;
      break;
    case NodeReport::Kind::kVersion:
      version_ = report.text;
      break;
  }
}

// Whether the service still knows a runner without a job. That it does not is no proof: a registration may be
// gone at the moment when the job begins.
Task<> RunWatch::LookUp() {
  for (;;) {
    co_await set_.context.loop.SleepFor(kLookUp);
    if (run_.state != RunState::kOnline || run_.runner_id == 0) continue;
    std::shared_ptr<ScaleSets> service = set_.service;
    Outcome<bool> is_known = co_await Attempt(service->HasRunner(run_.runner_id));
    if (!is_known) continue;
    if (*is_known) seen_.gone_since.reset();
    if (!*is_known && !seen_.gone_since) seen_.gone_since = Now();
    changed_();
  }
}

}  // namespace nodepool::runners
