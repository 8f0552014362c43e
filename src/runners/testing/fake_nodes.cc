#include "runners/testing/fake_nodes.h"

#include <algorithm>
#include <charconv>

namespace nodepool::runners::testing {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(200);
constexpr Duration kStart = std::chrono::seconds(1);

std::int64_t NumberOf(const std::string& text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

// Reports what changed each time that it looks.
class FakeSession : public NodeSession {
 public:
  FakeSession(FakeNodes& nodes, RunnerPlace place)
      : nodes_(nodes), place_(std::move(place)), broken_(nodes.broken_) {}

  Task<std::optional<NodeReport>> Next() override {
    for (;;) {
      co_await nodes_.loop_.SleepFor(kTick);
      bool is_over =
          nodes_.is_unreachable || broken_ != nodes_.broken_ || nodes_.destroyed_.contains(place_.node.id);
      if (is_over) co_return std::nullopt;
      if (auto report = Report()) co_return report;
    }
  }

  Task<> HandOver(std::string configuration) override {
    co_await nodes_.loop_.SleepFor(kTick);
    if (broken_ != nodes_.broken_) throw Error(Verdict::kRetry, "the session is over");
    auto process = nodes_.processes_[place_.runner.run.value];
    if (process->has_started) co_return;
    process->has_started = true;
    ++process->starts;
    ++nodes_.started_count_;
    nodes_.tasks_.Spawn("a runner", nodes_.RunProcess(process, NumberOf(configuration)));
  }

  std::string Complaint() const override { return nodes_.is_unreachable ? "connection refused" : ""; }

 private:
  std::optional<NodeReport> Say(NodeReport::Kind kind, int status = 0) {
    if (!said_.insert(kind).second) return std::nullopt;
    NodeReport report{kind, status, ""};
    if (kind == NodeReport::Kind::kRefused) report.text = "there is no run.sh";
    if (kind == NodeReport::Kind::kVersion) report.text = nodes_.version;
    return report;
  }

  std::optional<NodeReport> Report() {
    auto& process = nodes_.processes_[place_.runner.run.value];
    if (!process) process = std::make_shared<FakeNodes::Process>();
    nodes_.runs_of_node_[place_.node.id].insert(place_.runner.run.value);
    if (!process->has_started) {
      if (said_.empty() && nodes_.refuses()) return Say(NodeReport::Kind::kRefused);
      return Say(NodeReport::Kind::kReady);
    }
    if (auto report = Say(NodeReport::Kind::kStarted)) return report;
    if (process->is_online) {
      if (auto report = Say(NodeReport::Kind::kVersion)) return report;
      if (auto report = Say(NodeReport::Kind::kOnline)) return report;
    }
    if (process->has_job) {
      if (auto report = Say(NodeReport::Kind::kWorker)) return report;
    }
    return process->status ? Say(NodeReport::Kind::kEnded, *process->status) : std::nullopt;
  }

  FakeNodes& nodes_;
  RunnerPlace place_;
  std::uint64_t broken_;
  std::set<NodeReport::Kind> said_;
};

FakeNodes::FakeNodes(Loop& loop, FakeGithub& github)
    : loop_(loop), github_(github), tasks_(loop, log::Logger("test")) {}

std::unique_ptr<NodeSession> FakeNodes::Open(RunnerPlace place) {
  return std::make_unique<FakeSession>(*this, std::move(place));
}

Task<> FakeNodes::EndRunner(RunnerPlace place) {
  auto process = processes_.find(place.runner.run.value);
  if (process != processes_.end() && !is_unreachable) process->second->is_killed = true;
  co_await loop_.SleepFor(kTick);
}

void FakeNodes::BreakSessions() { ++broken_; }

void FakeNodes::Destroy(const std::string& node) {
  destroyed_.insert(node);
  for (const std::string& run : runs_of_node_[node]) processes_[run]->is_killed = true;
}

void FakeNodes::End(Process& process, int status) { process.status = status; }

Task<> FakeNodes::RunProcess(std::shared_ptr<Process> process, std::int64_t runner) {
  co_await loop_.SleepFor(kStart);
  bool is_never_online = is_silent();
  if (!is_never_online && !github_.GoOnline(runner)) co_return End(*process, end_status);
  process->is_online = !is_never_online;
  bool is_a_ghost = is_ghost();
  std::optional<SteadyTime> job_ends;
  for (;;) {
    co_await loop_.SleepFor(kTick);
    if (process->is_killed) co_return End(*process, -1);
    if (is_never_online || is_a_ghost) continue;
    std::optional<std::int64_t> job = github_.JobOf(runner);
    if (!job && !job_ends) co_return End(*process, end_status);
    if (job && *job != 0 && !job_ends) {
      job_ends = loop_.SteadyNow() + github_.job(*job).length;
      process->has_job = true;
      if (dies()) co_return End(*process, -1);
    }
    if (!job_ends || loop_.SteadyNow() < *job_ends) continue;
    github_.Finish(runner, result);
    co_return End(*process, end_status);
  }
}

std::size_t FakeNodes::running() const {
  return static_cast<std::size_t>(std::ranges::count_if(processes_, [](const auto& entry) {
    return entry.second && entry.second->has_started && !entry.second->status && !entry.second->is_killed;
  }));
}

int FakeNodes::most_started() const {
  int most = 0;
  for (const auto& [node, runs] : runs_of_node_) {
    int count = 0;
    for (const std::string& run : runs) count += processes_.at(run)->starts;
    most = std::max(most, count);
  }
  return most;
}

}  // namespace nodepool::runners::testing
