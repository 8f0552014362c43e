#include "model/runner.h"

#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include "model/node_request.h"

namespace nodepool {
namespace {

TEST(RunnerTest, RunsAreReadAsTheyAreWritten) {
  RunnerRun run;
  run.state = RunState::kJob;
  run.service = "octo";
  run.set = "small";
  run.runner_name = "np-small-00000001";
  run.runner_id = 7;
  run.lease = LeaseId(std::string(32, 'a'));
  run.node = NodeId("0000000001");
  run.handle = "h-1";
  run.job = {.request = 5, .repository = "octo/app", .job = "build\x1b[2J\n\""};
  run.job.assigned_time = FromSeconds(1'700'000'000);
  run.job_time = FromSeconds(1'700'000'000);
  Expected<RunnerRun> read = ParseRunnerRun(ToJson(run));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(ToJson(*read), ToJson(run));
  EXPECT_EQ(read->job, run.job);
}

TEST(RunnerTest, IncompleteRunsAreRefused) {
  EXPECT_FALSE(ParseRunnerRun(R"({"service": "octo", "set": "small"})"));
  EXPECT_FALSE(ParseRunnerRun(R"({"state": "job", "set": "small"})"));
  EXPECT_FALSE(ParseRunnerRun(R"({"state": "job", "service": "octo"})"));
  EXPECT_FALSE(ParseRunnerRun(R"({"state": "other", "service": "octo", "set": "small"})"));
  EXPECT_TRUE(ParseRunnerRun(R"({"state": "job", "service": "octo", "set": "small", "newer": 1})"));
}

TEST(RunnerTest, SetsAreReadAsTheyAreWritten) {
  RunnerSetRecord set;
  set.scale_set = 3;
  set.is_made = true;
  set.session = "s";
  set.deferred = {{.request = 17, .repository = "octo/app"}};
  set.jobs = {{.request = 18, .queued_time = FromSeconds(1'700'000'000.5)}};
  set.lost = {{.job = {.job = "x\n"}, .node = NodeId("0000000001"), .reason = "its node is gone"}};
  Expected<RunnerSetRecord> read = ParseRunnerSetRecord(ToJson(set));
  ASSERT_TRUE(read);
  EXPECT_EQ(ToJson(*read), ToJson(set));
  EXPECT_EQ(read->deferred, set.deferred);
  EXPECT_EQ(read->jobs, set.jobs);
  EXPECT_EQ(read->lost, set.lost);
}

TEST(RunnerTest, ListsOfOtherFormsAreReadAsFarAsTheyGo) {
  auto set = ParseRunnerSetRecord(R"({"jobs": [5, {"request": "x", "job": 7, "new": 1}], "lost": null})");
  ASSERT_TRUE(set);
  ASSERT_EQ(set->jobs.size(), 1);
  EXPECT_EQ(set->jobs[0].job, "7");
  EXPECT_TRUE(set->lost.empty());
  EXPECT_FALSE(ParseRunnerSetRecord(R"({"jobs": 5})"));
}

// RUN-74
TEST(RunnerTest, TheNodesUserDataNamesTheJob) {
  Node node;
  RunnerRun run{.service = "octo", .set = "small", .runner_name = "np-1"};
  run.job = {.repository = "octo/app", .workflow = "ci.yaml", .job = "build", .run_url = "https://x"};
  MarkJob(node, run);
  EXPECT_TRUE(node.user_data.is_null());
  Lease lease;
  lease.client = "runners:octo";
  PutInUse(node, LeaseId(std::string(32, 'a')), lease, FromSeconds(1));
  MarkJob(node, run);
  MarkJob(node, run);
  EXPECT_EQ(LeaseOf(node), LeaseId(std::string(32, 'a')));
  EXPECT_EQ(boost::json::serialize(node.user_data.value().at("runner")),
            R"({"name":"np-1","set":"octo/small","repository":"octo/app","workflow":"ci.yaml","job":"build",)"
            R"("run_url":"https://x"})");
}

TEST(RunnerTest, JobsInWords) {
  EXPECT_EQ(DescribeJob({}), "(unknown) of (unknown)");
  EXPECT_EQ(DescribeJob({.repository = "octo/app", .job = "b\x1b\n", .run_url = "https://x"}),
            "b\\x1b\\x0a of octo/app (https://x)");
}

TEST(RunnerTest, RunIds) {
  EXPECT_TRUE(IsRunId("0123abcd"));
  for (const char* bad : {"", "0123ABCD", "0123abc", "0123abcde", "0123abc/"})
    EXPECT_FALSE(IsRunId(bad)) << bad;
}

}  // namespace
}  // namespace nodepool
