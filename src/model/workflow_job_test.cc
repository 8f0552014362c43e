#include "model/workflow_job.h"

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

namespace nodepool {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kEvent =
    R"({"action": "queued", "repository": {"full_name": "octo/app", "private": true},
        "workflow_job": {"id": 7, "run_id": 70, "name": "build", "workflow_name": "CI", "status": "queued",
                         "labels": ["small", 5, "gpu"], "html_url": "https://github.com/octo/app/actions/runs/70/job/7",
                         "created_at": "2026-11-28T08:00:00Z", "conclusion": null, "runner_name": null}})";

WorkflowJob JobOf(WorkflowJobState state, std::string runner_name = "") {
  WorkflowJob job{.state = state, .runner_name = std::move(runner_name)};
  job.job.request = 7;
  return job;
}

TEST(WorkflowJobTest, TheJobOfADelivery) {
  auto event = ParseWorkflowJobEvent(kEvent);
  ASSERT_TRUE(event && *event);
  const WorkflowJob& job = **event;
  EXPECT_EQ(job.state, WorkflowJobState::kQueued);
  EXPECT_EQ(job.job.request, 7);
  EXPECT_EQ(job.run, 70);
  EXPECT_EQ(job.job.repository, "octo/app");
  EXPECT_EQ(job.job.workflow, "CI");
  EXPECT_EQ(job.job.run_url, "https://github.com/octo/app/actions/runs/70/job/7");
  EXPECT_THAT(job.labels, ElementsAre("small", "gpu"));
  EXPECT_TRUE(job.job.queued_time);
  EXPECT_EQ(job.runner_name, "");
  Expected<WorkflowJob> again = ParseWorkflowJob(ToJson(job));
  ASSERT_TRUE(again);
  EXPECT_EQ(ToJson(*again), ToJson(job));
}

TEST(WorkflowJobTest, OddDeliveries) {
  for (const char* odd : {"", "[]", "{}", "{\"workflow_job\": {}}",
                          R"({"workflow_job": {"id": 1}, "repository": {"full_name": "no-slash"}})",
                          R"({"workflow_job": {"id": 1}, "repository": {"full_name": "a/b/c"}})",
                          R"({"workflow_job": {"id": 1}, "repository": {"full_name": "a/\u001bsecret"}})"}) {
    auto event = ParseWorkflowJobEvent(odd);
    ASSERT_FALSE(event) << odd;
    EXPECT_THAT(event.error().message(), Not(HasSubstr("secret")));
  }
  auto read = [](const char* text) {
    return ReadWorkflowJob(boost::json::parse(text).as_object(), "octo/app");
  };
  EXPECT_FALSE(read(R"({"id": 1, "status": "waiting"})"));
  EXPECT_FALSE(read(R"({"id": "1", "status": "queued"})"));
  EXPECT_FALSE(read(R"({"id": -1, "status": "queued"})"));
  auto job =
      read(R"j({"id": 1, "status": "queued", "html_url": "javascript:alert(1)", "labels": "x", "name": 5})j");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->job.run_url, "");
  std::string name(5000, 'x');
  EXPECT_LT(read((R"({"id": 1, "status": "queued", "name": ")" + name + "\"}").c_str())->job.job.size(), 400);
}

// RUN-81
TEST(WorkflowJobTest, AStateOnlyGoesForward) {
  WorkflowJob job = JobOf(WorkflowJobState::kInProgress, "np-1");
  EXPECT_FALSE(Advance(job, JobOf(WorkflowJobState::kQueued)));
  EXPECT_FALSE(Advance(job, JobOf(WorkflowJobState::kInProgress, "other")));
  EXPECT_EQ(job.runner_name, "np-1");
  EXPECT_TRUE(Advance(job, JobOf(WorkflowJobState::kCompleted, "np-1")));
  EXPECT_FALSE(Advance(job, JobOf(WorkflowJobState::kQueued)));
  EXPECT_EQ(job.state, WorkflowJobState::kCompleted);
}

}  // namespace
}  // namespace nodepool
