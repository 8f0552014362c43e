#include "model/job.h"

#include <gtest/gtest.h>

#include "model/job_event.h"

namespace nodepool {
namespace {

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

}  // namespace
}  // namespace nodepool
