#include "model/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace nodepool {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// operations.13.5, D-67: the record in ZooKeeper, to the byte.
TEST(JobRuleTest, Golden) {
  for (std::string text : {R"({"name": "unit-py27", "hold_on_failure": 2})",
                           R"({"name": "^unit-", "hold_on_failure": null, "owner": ["Ada"]})"}) {
    Expected<JobRule> rule = ParseJobRule(text);
    ASSERT_TRUE(rule) << rule.error().message();
    EXPECT_EQ(ToJson(*rule), text) << "unknown keys stay (D-04)";
  }
  EXPECT_FALSE(ParseJobRule(R"({"name": "a"})")->hold_on_failure);
}

TEST(JobRuleTest, ErrorsSayWhatIsWrong) {
  EXPECT_EQ(ParseJobRule(R"({"hold_on_failure": 2})").error().message(),
            "\"name\" is not a text of 1 to 255 bytes");
  EXPECT_FALSE(ParseJobRule(R"({"name": ""})"));
  EXPECT_FALSE(ParseJobRule(R"({"name": ")" + std::string(256, 'a') + R"("})"));
  EXPECT_FALSE(ParseJobRule(R"({"name": "a", "hold_on_failure": "2"})"));
  EXPECT_FALSE(ParseJobRule("[]"));
}

TEST(HoldNoteTest, Golden) {
  std::string text =
      R"({"hold_job": "unit", "comment": "Automatically held after failing unit", "created_time": 1700000000.5, )"
      R"("by": "x"})";
  Expected<HoldNote> note = ParseHoldNote(text);
  ASSERT_TRUE(note) << note.error().message();
  EXPECT_EQ(ToJson(*note), text);
  EXPECT_EQ(note->comment, HoldComment("unit"));
  EXPECT_FALSE(ParseHoldNote(R"({"comment": "x"})"));
}

// operations.13.7, 13.9: a comment counts where there is no hold_job, and as a whole, not a part of
// it.
TEST(HoldNoteTest, TheJobThatANodeIsHeldFor) {
  Node node;
  node.SetState(NodeState::kHold, {});
  EXPECT_FALSE(HeldForJob(node)) << "without a comment";
  node.comment = "Ada looks at unit";
  EXPECT_FALSE(HeldForJob(node));
  node.comment = HoldComment("unit");
  EXPECT_EQ(HeldForJob(node), "unit");
  node.hold_job = "other";
  EXPECT_EQ(HeldForJob(node), "other");
  node.SetState(NodeState::kUsed, {});
  EXPECT_FALSE(HeldForJob(node));
}

// operations.13.6
TEST(JobEventTest, Messages) {
  Expected<JobEvent> event = ParseJobMessage(
      "onFinalized \n {\"name\": \"unit-py27\", \"url\": \"job/unit-py27/\", \"build\": {\"number\": 41, "
      "\"status\": \"FAILURE\", \"node_name\": \"trusty-cloud-a-1234\", \"parameters\": {\"A\": \"b\"}}}");
  ASSERT_TRUE(event) << event.error().message();
  EXPECT_EQ(event->topic, JobEvent::Topic::kFinalized);
  EXPECT_EQ(event->job, "unit-py27");
  EXPECT_EQ(event->node_name, "trusty-cloud-a-1234");
  EXPECT_TRUE(event->is_failure());
  EXPECT_TRUE(ParseJobMessage(R"(onFinalized {"name":"a","build":{}})")->is_failure())
      << "an absent status counts as failure";
  EXPECT_TRUE(ParseJobMessage(R"(onFinalized {"name":"a","build":{"status":"ABORTED"}})")->is_failure());
  EXPECT_FALSE(ParseJobMessage(R"(onFinalized {"name":"a","build":{"status":"SUCCESS"}})")->is_failure());
  EXPECT_FALSE(ParseJobMessage(R"(onStarted {"name":"a","build":{"status":"FAILURE"}})")->is_failure());
  EXPECT_FALSE(ParseJobMessage(R"(onCompleted {"name":"a","build":{"status":"FAILURE"}})")->is_failure());
}

TEST(JobEventTest, BadMessages) {
  for (std::string bad : std::vector<std::string>{
           "", " ", "onFinalized", "onFinalized ", "onFinalized {", "onFinalized []", "onUnheard {}",
           R"(onFinalized {"build":{}})", R"(onFinalized {"name":"","build":{}})",
           R"(onFinalized {"name":"a"})", R"(onFinalized {"name":1,"build":{}})",
           R"(onFinalized {"name":"a","build":[]})", R"(onFinalized {"name":"a","build":{"node_name":7}})",
           R"({"name":"a","build":{}})", "onFinalized " + std::string(100'000, '['),
           std::string("\xff\x00\x01", 3),
           R"(onFinalized {"name":"a","build":{"node_name":")" + std::string(300, 'x') + "\"}}"}) {
    Expected<JobEvent> event = ParseJobMessage(bad);
    ASSERT_FALSE(event) << bad;
    EXPECT_LT(event.error().message().size(), 200u);
  }
}

TEST(JobEventTest, TheJsonAloneNamesItsTopic) {
  EXPECT_EQ(ParseJobEvent(R"({"name":"a","build":{}})")->topic, JobEvent::Topic::kFinalized);
  EXPECT_EQ(ParseJobEvent(R"({"name":"a","build":{},"event":"onStarted"})")->topic,
            JobEvent::Topic::kStarted);
  EXPECT_FALSE(ParseJobEvent(R"({"name":"a","build":{},"event":"unheard"})"));
}

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
