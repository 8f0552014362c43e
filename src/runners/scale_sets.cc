#include "runners/scale_sets.h"

#include <algorithm>

#include "base/text.h"

namespace nodepool::runners {

bool Fits(const std::vector<std::string>& job_labels, const std::vector<std::string>& set_labels) {
  return std::ranges::all_of(job_labels, [&](const std::string& wanted) {
    auto is_same = [&](const std::string& label) { return Lower(label) == Lower(wanted); };
    return std::ranges::any_of(set_labels, is_same);
  });
}

Task<std::optional<ScaleSet>> PolledSets::FindSet(std::string name, std::int64_t) {
  auto known = ids_.find(name);
  if (known == ids_.end()) co_return std::nullopt;
  co_return ScaleSet{known->second, sets_.at(known->second).order.labels, true};
}

Task<ScaleSet> PolledSets::MakeSet(ScaleSetOrder order) {
  std::int64_t id = ids_.try_emplace(order.name, static_cast<std::int64_t>(ids_.size()) + 1).first->second;
  return ChangeSet(id, std::move(order));
}

Task<ScaleSet> PolledSets::ChangeSet(std::int64_t id, ScaleSetOrder order) {
  ScaleSet set{id, order.labels, true};
  sets_[id].order = std::move(order);
  co_return set;
}

Task<> PolledSets::DeleteSet(std::int64_t) { co_return; }

PolledSets::Set& PolledSets::Require(std::int64_t set) {
  auto found = sets_.find(set);
  if (found == sets_.end()) throw Error(Verdict::kNotFound, "the set is not known yet");
  return found->second;
}

// Nothing was told in this session yet.
Task<MessageSession> PolledSets::OpenSession(std::int64_t set, std::string owner) {
  sched::JobStatistics statistics = co_await Begin(set);
  Require(set).known.clear();
  co_return MessageSession{.set = set, .id = "polls", .owner = std::move(owner), .statistics = statistics};
}

Task<> PolledSets::CloseSession(std::int64_t, std::string) { co_return; }

Task<> PolledSets::Acknowledge(MessageSession& session, std::int64_t batch) {
  Set& set = Require(session.set);
  if (batch == set.batches) set.known = set.now_known;
  co_return;
}

MessageBatch PolledSets::Compare(Set& set, const std::vector<WaitingJob>& jobs, JobMessage::Kind kind,
                                 WallTime now) {
  MessageBatch batch{.id = ++set.batches};
  set.now_known.clear();
  for (const WaitingJob& waiting : jobs) {
    RunnerJob job = waiting.job;
    auto known = set.known.find(job.request);
    bool is_new = known == set.known.end();
    if (!is_new) job.assigned_time = known->second.assigned_time;
    if (!job.assigned_time) job.assigned_time = now;
    if (is_new) batch.jobs.push_back({.kind = kind, .job = job});
    set.now_known.emplace(job.request, std::move(job));
  }
  for (const auto& [request, job] : set.known) {
    if (!set.now_known.contains(request)) batch.jobs.push_back({.kind = JobMessage::Kind::kGone, .job = job});
  }
  return batch;
}

Duration PollPauses::Next(bool had_jobs) {
  pause_ = had_jobs ? shortest_ : std::min<Duration>(longest_, pause_ * 5 / 4);
  return pause_;
}

}  // namespace nodepool::runners
