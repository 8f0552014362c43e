#include "runners/github/workflow_jobs.h"

#include <gmock/gmock.h>

namespace nodepool::runners::github {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class WorkflowJobsTest : public ::testing::Test {
 protected:
  static WorkflowJob Job(std::int64_t number, WorkflowJobState state = WorkflowJobState::kQueued,
                         std::string runner_name = "") {
    WorkflowJob job{.state = state, .run = 70, .labels = {"small"}, .runner_name = std::move(runner_name)};
    job.job.request = number;
    job.job.repository = "octo/app";
    return job;
  }
  std::vector<std::int64_t> Waiting(const std::vector<std::string>& labels = {"Small", "big"}) {
    std::vector<std::int64_t> numbers;
    for (const WaitingJob& each : jobs_.Waiting(labels)) numbers.push_back(each.job.request);
    return numbers;
  }
  void Note(WorkflowJob job) { jobs_.Note(std::move(job), now_); }
  void Count(const std::vector<WorkflowJob>& listed) { jobs_.Count("octo/app", listed, now_, now_); }

  WallTime now_ = FromSeconds(1'800'000'000);
  WorkflowJobs jobs_;
};

// RUN-81
TEST_F(WorkflowJobsTest, DeliveriesCountOnceAndInAnyOrder) {
  Note(Job(7, WorkflowJobState::kInProgress, "np-1"));
  Note(Job(7));
  EXPECT_THAT(Waiting(), IsEmpty());
  Note(Job(8));
  std::uint64_t version = jobs_.version();
  Note(Job(8));
  EXPECT_EQ(jobs_.version(), version);
  EXPECT_THAT(Waiting(), ElementsAre(8));
  Note(Job(8, WorkflowJobState::kCompleted));
  Note(Job(8));
  EXPECT_THAT(Waiting(), IsEmpty());
  EXPECT_FALSE(jobs_.has_waiting());
}

// RUN-83
TEST_F(WorkflowJobsTest, OnlyASetWithAllLabelsRunsAJob) {
  Note(Job(7));
  EXPECT_THAT(Waiting({"big"}), IsEmpty());
  EXPECT_THAT(Waiting({"SMALL"}), ElementsAre(7));
}

// RUN-82: what deliveries did not say.
TEST_F(WorkflowJobsTest, AListFindsWhatWasLost) {
  Note(Job(7));
  now_ += minutes(2);
  Count({Job(8), Job(9, WorkflowJobState::kInProgress, "np-1")});
  EXPECT_THAT(Waiting(), ElementsAre(8)) << "7 was cancelled, and nothing said so";
  Count({Job(7), Job(8)});
  EXPECT_THAT(Waiting(), ElementsAre(7, 8)) << "the list was wrong";
}

// RUN-82: what a list does not have yet.
TEST_F(WorkflowJobsTest, AListThatIsLateEndsNothing) {
  Note(Job(7));
  now_ += seconds(30);
  Count({});
  EXPECT_THAT(Waiting(), ElementsAre(7));
  jobs_.Count("octo/other", {}, now_ + hours(1), now_ + hours(1));
  EXPECT_THAT(Waiting(), ElementsAre(7));
}

TEST_F(WorkflowJobsTest, WhatHasARunner) {
  Note(Job(7));
  std::uint64_t version = jobs_.version();
  Note(Job(7, WorkflowJobState::kInProgress, "np-1"));
  auto changed = jobs_.WithRunnerSince(version);
  ASSERT_EQ(changed.size(), 1);
  EXPECT_EQ(changed[0]->runner_name, "np-1");
  EXPECT_THAT(jobs_.WithRunnerSince(jobs_.version()), IsEmpty());
  EXPECT_THAT(jobs_.RepositoriesSince(now_), ElementsAre("octo/app"));
}

TEST_F(WorkflowJobsTest, OldOnesGo) {
  WorkflowJob old = Job(5);
  old.job.queued_time = now_ - hours(25);
  Note(old);
  EXPECT_THAT(Waiting(), IsEmpty()) << "a delivery of long ago";
  Note(Job(7, WorkflowJobState::kCompleted));
  Note(Job(8));
  now_ += hours(2);
  Count({Job(8)});
  EXPECT_EQ(jobs_.Find(7), nullptr);
  EXPECT_NE(jobs_.Find(8), nullptr);
}

}  // namespace
}  // namespace nodepool::runners::github
