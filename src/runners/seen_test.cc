// What is seen of jobs: beside their nodes, in records, in metrics.

#include <boost/json/serialize.hpp>

#include "runners/runners_fixture_for_test.h"

namespace nodepool::runners {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

// RUN-74
TEST_F(RunnersTest, TheNodeNamesItsJob) {
  StartDaemon();
  github_.Queue(minutes(2));
  ASSERT_TRUE(Await([this] { return !Runs().empty() && Runs().front().state == RunState::kJob; }));
  std::string path = "/nodepool/nodes/" + Runs().front().node.value;
  ASSERT_TRUE(Await([&] { return Data(path).find("\"runner\"") != std::string::npos; }, seconds(60)));
  Expected<Node> node = ParseNode(Data(path), time_.loop().Now());
  ASSERT_TRUE(node);
  boost::json::value data = node->user_data.value();
  EXPECT_EQ(data.at("client"), "runners:octo");
  EXPECT_EQ(data.at("runner").at("repository"), "octo/app");
  EXPECT_EQ(data.at("runner").at("workflow"), ".github/workflows/ci.yaml");
  EXPECT_EQ(data.at("runner").at("run_url"), "https://github.com/octo/app/actions/runs/1");
  ASSERT_TRUE(AwaitAllDone());
  EXPECT_TRUE(Await([this] { return IsClean(); }, minutes(1)));
}

// RUN-73
TEST_F(RunnersTest, JobsThatWaitAreNamedWithTheirReason) {
  services_ = {Service({Set("small", 1)})};
  StartDaemon();
  for (int i = 0; i < 3; ++i) github_.Queue(minutes(2));
  ASSERT_TRUE(Await([this] { return github_.CountJobs(Job::State::kRunning) == 1; }));
  ASSERT_TRUE(Await([this] { return SetRecord().jobs.size() == 2; }, minutes(1)))
      << Data("/nodepool/runners/sets/octo/small");
  EXPECT_EQ(SetRecord().jobs.front().repository, "octo/app");
  EXPECT_EQ(SetRecord().why, "max-runners of the set, 1, is reached");
  ASSERT_TRUE(AwaitAllDone());
  EXPECT_TRUE(Await([this] { return SetRecord().jobs.empty() && SetRecord().why.empty(); }, minutes(2)));
}

// RUN-37, RUN-73
TEST_F(RunnersTest, JobsThatAreNotAcquiredYetAreNamed) {
  config::RunnerSet set = Set();
  set.max_per_repo = 1;
  services_ = {Service({set})};
  StartDaemon();
  for (int i = 0; i < 2; ++i) github_.Queue(minutes(2));
  ASSERT_TRUE(Await([this] { return SetRecord().deferred.size() == 1; }));
  EXPECT_EQ(SetRecord().deferred.front().repository, "octo/app");
  EXPECT_TRUE(AwaitAllDone());
}

// RUN-37: where the service assigns jobs at once.
TEST_F(RunnersTest, ALimitThatDoesNotHoldIsWarnedOf) {
  config::RunnerSet set = Set();
  set.max_per_repo = 1;
  services_ = {Service({set})};
  StartDaemon();
  github_.Queue();
  ASSERT_TRUE(AwaitAllDone());
  EXPECT_THAT(SetRecord().warnings, ::testing::IsEmpty());
  github_.is_direct = true;
  github_.Queue();
  ASSERT_TRUE(AwaitAllDone());
  ASSERT_TRUE(Await([this] { return !SetRecord().warnings.empty(); }, minutes(1)));
  EXPECT_THAT(SetRecord().warnings.front(), HasSubstr("max-per-repo does not hold"));
}

// RUN-44: the days count from the first newer version on, and end with a new image.
TEST_F(RunnersTest, AnOldRunnerIsWarnedOf) {
  github_.newest_version = "2.341.0";
  StartDaemon();
  github_.Queue();
  ASSERT_TRUE(AwaitAllDone());
  ASSERT_TRUE(Await([this] { return !SetRecord().warnings.empty(); }, minutes(1)));
  EXPECT_THAT(SetRecord().warnings.front(), HasSubstr("is 2.340.0, the newest is 2.341.0"));
  github_.newest_version = "2.342.0";
  time_.Advance(std::chrono::hours(10 * 24));
  EXPECT_THAT(SetRecord().warnings.front(), HasSubstr("the newest is 2.342.0"));
  EXPECT_THAT(SetRecord().warnings.front(), HasSubstr("in 20 days"));
  EXPECT_THAT(prometheus_.Text(),
              HasSubstr("nodepool_runners_version_age_days{service=\"octo\",set=\"small\"} 10"));
  nodes_.version = "2.342.0";
  github_.Queue();
  ASSERT_TRUE(AwaitAllDone());
  EXPECT_TRUE(Await([this] { return SetRecord().warnings.empty(); }, minutes(1)));
}

// RUN-53, RUN-73
TEST_F(RunnersTest, ALostJobIsNamedForADay) {
  StartDaemon();
  std::int64_t job = github_.Queue(minutes(20));
  ASSERT_TRUE(Await([this] { return Runs().size() == 1 && Runs().front().state == RunState::kJob; }));
  RunnerRun run = Runs().front();
  nodes_.Destroy(run.node.value);
  ASSERT_TRUE(zk_.tree().Delete({"/nodepool/leases/" + run.lease.value, -1}, 0));
  ASSERT_TRUE(Await([this] { return SetRecord().lost.size() == 1; }));
  EXPECT_EQ(SetRecord().lost.front().job.repository, "octo/app");
  EXPECT_EQ(SetRecord().lost.front().node, run.node);
  EXPECT_FALSE(SetRecord().lost.front().reason.empty());
  github_.Finish(github_.job(job).runner, "failed");
  ASSERT_TRUE(Await([this] { return Runs().empty(); }, minutes(3)));
  EXPECT_EQ(SetRecord().lost.size(), 1);
  time_.Advance(std::chrono::hours(25));
  EXPECT_TRUE(SetRecord().lost.empty());
}

// RUN-73: from the assignment to the first step.
TEST_F(RunnersTest, TheTimeLineIsMeasured) {
  StartDaemon();
  github_.Queue(seconds(30));
  ASSERT_TRUE(Await([this] { return !Runs().empty() && Runs().front().state == RunState::kJob; }));
  ASSERT_TRUE(Await([this] { return Runs().front().job.assigned_time.has_value(); }));
  RunnerRun run = Runs().front();
  EXPECT_LE(*run.created_time, *run.node_time);
  EXPECT_LE(*run.node_time, *run.online_time);
  EXPECT_LE(*run.online_time, *run.job_time);
  EXPECT_LE(*run.job.queued_time, *run.job.assigned_time);
  ASSERT_TRUE(AwaitAllDone());
  std::string text = prometheus_.Text();
  for (const char* name : {"first_step", "start", "node", "wait"})
    EXPECT_THAT(text, HasSubstr(fmt::format(
                          "nodepool_runner_{}_seconds_count{{service=\"octo\",set=\"small\"}} 1", name)));
}

}  // namespace
}  // namespace nodepool::runners
