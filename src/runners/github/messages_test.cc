#include "runners/github/messages.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace nodepool::runners::github {
namespace {

namespace json = boost::json;

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

}  // namespace
}  // namespace nodepool::runners::github
