#include "runners/github/jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "runners/forgejo/forgejo_service.h"
#include "runners/scale_sets.h"

namespace nodepool::runners::github {

namespace {

namespace json = boost::json;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::optional<MessageBatch> Batch(const std::string& body, const std::string& more = "") {
  json::object message{{"messageId", 7}, {"messageType", "RunnerScaleSetJobMessages"}, {"body", body}};
  if (!more.empty()) {
    json::value added = json::parse(more);
    for (const auto& [key, value] : added.as_object()) message[key] = value;
  }
  return ReadBatch(message, "https://github.com");
}

// RUN-4
TEST(MessagesTest, JobsOfAMessage) {
  auto batch = Batch(
      R"([{"messageType": "JobStarted", "runnerRequestId": 5, "repositoryName": "app", "ownerName": "octo",
           "jobDisplayName": "build", "workflowRunId": 12, "runnerName": "np-1", "runnerId": 3,
           "jobWorkflowRef": "octo/app/.github/workflows/ci.yaml@refs/heads/main",
           "queueTime": "2023-11-14T22:13:20.5Z", "scaleSetAssignTime": "2023-11-14T22:13:21Z"},
          {"messageType": "JobCompleted", "runnerRequestId": 6, "result": "canceled",
           "queueTime": "0001-01-01T00:00:00Z"}])",
      R"({"statistics": {"totalAssignedJobs": 3, "totalRunningJobs": 1}})");
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->id, 7);
  ASSERT_EQ(batch->jobs.size(), 2);
  const JobMessage& started = batch->jobs[0];
  EXPECT_EQ(started.kind, JobMessage::Kind::kStarted);
  EXPECT_EQ(started.job.request, 5);
  EXPECT_EQ(started.job.repository, "octo/app");
  EXPECT_EQ(started.job.run_url, "https://github.com/octo/app/actions/runs/12");
  EXPECT_EQ(started.runner_name, "np-1");
  EXPECT_EQ(started.job.queued_time, FromSeconds(1'700'000'000.5));
  EXPECT_EQ(started.job.assigned_time, FromSeconds(1'700'000'001));
  EXPECT_EQ(started.job.workflow, ".github/workflows/ci.yaml");
  EXPECT_EQ(batch->jobs[1].result, "canceled");
  EXPECT_FALSE(batch->jobs[1].job.queued_time);
  ASSERT_TRUE(batch->statistics);
  EXPECT_EQ(batch->statistics->assigned, 3);
  EXPECT_EQ(batch->statistics->running, 1);
}

// RUN-28
TEST(MessagesTest, UnknownTypesAndFieldsAreLeftOut) {
  auto batch = Batch(R"([{"messageType": "JobDreamt", "runnerRequestId": "x", "new": [1]}, 5, null])");
  ASSERT_TRUE(batch);
  ASSERT_EQ(batch->jobs.size(), 1);
  EXPECT_EQ(batch->jobs[0].kind, JobMessage::Kind::kOther);
  EXPECT_EQ(batch->jobs[0].job.request, 0);
  auto other = ReadBatch(json::parse(R"({"messageId": 8, "messageType": "Other", "body": "[]"})"), "");
  ASSERT_TRUE(other);
  EXPECT_TRUE(other->jobs.empty());
  EXPECT_FALSE(ReadBatch(json::parse(R"({"messageType": "RunnerScaleSetJobMessages"})"), ""));
  EXPECT_FALSE(ReadBatch(json::parse("[]"), ""));
}

// RUN-28
TEST(MessagesTest, ABodyThatCannotBeReadHasNoJobs) {
  for (const char* body : {"", "x", "{", "{}", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["}) {
    auto batch = Batch(body);
    ASSERT_TRUE(batch);
    EXPECT_TRUE(batch->jobs.empty()) << body;
  }
}

TEST(MessagesTest, WhatIsHostileIsBounded) {
  json::array jobs;
  for (int i = 0; i < 5000; ++i) jobs.push_back({{"messageType", "JobAssigned"}, {"runnerRequestId", i}});
  jobs[0].as_object()["repositoryName"] = std::string(1 << 20, 'x');
  jobs[0].as_object()["ownerName"] = "../..";
  jobs[0].as_object()["workflowRunId"] = 1;
  auto batch =
      Batch(json::serialize(jobs), R"({"statistics": {"totalAssignedJobs": -5, "totalRunningJobs": 9e99,
                                                "totalAvailableJobs": 9223372036854775807}})");
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->jobs.size(), kMaxJobsOfBatch);
  EXPECT_LT(batch->jobs[0].job.repository.size(), 2000);
  EXPECT_TRUE(batch->jobs[0].job.run_url.starts_with("https://github.com/..%2F../"));
  EXPECT_EQ(batch->statistics->assigned, 0);
  EXPECT_EQ(batch->statistics->running, 0);
  EXPECT_EQ(batch->statistics->available, 1'000'000'000);
}

TEST(MessagesTest, SetsAndSessions) {
  auto set = ReadSet(json::parse(
      R"({"id": 4, "labels": [{"name": "a"}, {"name": "b"}, 3], "RunnerSetting": {"disableUpdate": true}})"));
  ASSERT_TRUE(set);
  EXPECT_EQ(set->labels, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(set->has_updates_disabled);
  EXPECT_FALSE(ReadSet(json::parse(R"({"id": 0})")));
  const char* session =
      R"({"sessionId": "s", "ownerName": "me", "messageQueueUrl": "https://q?x=1", "messageQueueAccessToken": "t"})";
  ASSERT_TRUE(ReadSession(json::parse(session)));
  EXPECT_EQ(ReadSession(json::parse(session))->queue_url, "https://q?x=1");
  EXPECT_FALSE(ReadSession(
      json::parse(R"({"sessionId": "s", "messageQueueUrl": "http://q", "messageQueueAccessToken": "t"})")));
}

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

namespace nodepool::runners::forgejo {

namespace {

using ::testing::HasSubstr;

std::vector<WaitingJob> JobsIn(const std::string& text, const std::string& repository = "octo/app") {
  return ReadWaitingJobs(boost::json::parse(text), "https://forge.example.org", repository);
}

// RUN-90
TEST(WaitingJobsTest, AListAndNull) {
  auto jobs = JobsIn(
      R"([{"id": 9, "attempt": 2, "handle": "h-9", "name": "test", "runs_on": ["small"], "status": "waiting", "repo_id": 4},
          {"id": 7, "attempt": 1, "handle": "h-7", "name": "build", "runs_on": ["small", "gpu"], "repo_id": 4}])");
  ASSERT_EQ(jobs.size(), 2);
  EXPECT_EQ(jobs[0].handle, "h-7");
  EXPECT_EQ(jobs[0].job.request, 7001);
  EXPECT_EQ(jobs[0].job.repository, "octo/app");
  EXPECT_EQ(jobs[0].job.run_url, "https://forge.example.org/octo/app/actions");
  EXPECT_EQ(jobs[1].job.request, 9002);
  EXPECT_EQ(JobsIn(R"([{"id": 9, "handle": "h", "repo_id": 4}])", "")[0].job.repository, "repository 4");
  for (const char* none : {"null", "[]", "{}", "7"}) EXPECT_TRUE(JobsIn(none).empty()) << none;
}

TEST(WaitingJobsTest, OddEntriesAreLeftOut) {
  for (const char* odd : {R"({"handle": "h"})", R"({"id": 1})", R"({"id": "x", "handle": "h"})",
                          R"({"id": 1, "handle": "a b"})", R"({"id": 1, "handle": "--label"})",
                          R"({"id": 1, "handle": "h", "status": "running"})", "5", "null"})
    EXPECT_TRUE(JobsIn("[" + std::string(odd) + "]").empty()) << odd;
  std::string many = "[";
  for (int i = 1; i <= 3000; ++i) many += R"({"id": )" + std::to_string(i) + R"(, "handle": "h"},)";
  many.back() = ']';
  EXPECT_EQ(JobsIn(many).size(), 1000);
  std::string name(5000, 'x');
  EXPECT_LT(JobsIn(R"([{"id": 1, "handle": "h", "name": ")" + name + "\"}]")[0].job.job.size(), 400);
}

// RUN-93
TEST(WaitingJobsTest, TooOldServersAreNamed) {
  EXPECT_EQ(FaultOfVersion("15.0.0+gitea-1.22.0"), "");
  EXPECT_EQ(FaultOfVersion("16.1"), "");
  EXPECT_THAT(FaultOfVersion("14.0.2+gitea-1.22.0"), HasSubstr("Forgejo 14.0.2"));
  EXPECT_THAT(FaultOfVersion("14.0.2+gitea-1.22.0"), HasSubstr("Forgejo 15 or newer"));
  EXPECT_THAT(FaultOfVersion("1.26.0"), HasSubstr("Gitea 1.26.0"));
  EXPECT_THAT(FaultOfVersion(""), HasSubstr("(unknown)"));
}

}  // namespace

}  // namespace nodepool::runners::forgejo

namespace nodepool::runners {

namespace {

using std::chrono::seconds;

// RUN-83, RUN-90
TEST(PolledSetsTest, AllLabelsOfAJobAreTheSets) {
  EXPECT_TRUE(Fits({"Small", "gpu"}, {"small", "GPU", "big"}));
  EXPECT_FALSE(Fits({"Small", "gpu"}, {"small"}));
  EXPECT_TRUE(Fits({}, {"small"}));
}

// RUN-94
TEST(PolledSetsTest, PollsSlowDown) {
  PollPauses pauses{seconds(2), seconds(10)};
  EXPECT_EQ(pauses.Next(true), seconds(2));
  Duration pause{};
  for (int i = 0; i < 20; ++i) pause = pauses.Next(false);
  EXPECT_EQ(pause, seconds(10));
  EXPECT_EQ(pauses.Next(true), seconds(2));
}

}  // namespace

}  // namespace nodepool::runners
