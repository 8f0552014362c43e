// What a daemon leaves when it dies at any moment, and that another one ends it (runners.md 11).
#include <cstdlib>

#include "base/testing/often.h"
#include "runners/runners_fixture_for_test.h"

namespace nodepool::runners {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using Fault = nodepool::testing::FaultyZk::Fault;
using Moment = testing::FakeConnection::Moment;

constexpr int kMoments = 34;

class AnyMomentTest : public RunnersTest, public ::testing::WithParamInterface<std::tuple<int, bool, bool>> {
 protected:
  // Every write to the tree and every call of the service that changes something counts.
  void DieAtMoment(Daemon& daemon, int moment, bool is_carried_out) {
    daemon.faulty->FailWhen([&daemon, moment, is_carried_out, this](const auto& call) {
      if (daemon.is_dead) return Fault::kBefore;
      if (!call.is_write || moments_++ != moment) return Fault::kNone;
      daemon.is_dead = true;
      return is_carried_out ? Fault::kAfter : Fault::kBefore;
    });
    daemon.faulty->SetError(Error(Verdict::kLostSession, "the daemon is dead"));
    daemon.check = [&daemon, moment, is_carried_out, this](const std::string& call, Moment when) {
      bool changes =
          call != "NextBatch" && call != "FindSet" && call != "FindRunner" && call != "ListRunners";
      bool is_here = (when == Moment::kAfter) == is_carried_out;
      if (!changes || !is_here || moments_++ != moment) return;
      daemon.is_dead = true;
      throw Error(Verdict::kRetry, "the daemon is dead");
    };
  }

  int moments_ = 0;
};

// RUN-56
TEST_P(AnyMomentTest, TheJobRunsOnceAndNothingIsLeft) {
  auto [moment, is_carried_out, is_direct] = GetParam();
  github_.is_direct = is_direct;
  Daemon& first = StartDaemon("np01");
  ASSERT_TRUE(Await([this] { return SetRecord().state == "listening"; }));
  DieAtMoment(first, moment, is_carried_out);
  std::int64_t job = github_.Queue();
  bool is_over = Await([&] { return first.is_dead || (github_.AllDone() && IsClean()); }, minutes(5));
  ASSERT_TRUE(is_over);
  bool has_died = first.is_dead;
  if (has_died) {
    Bury(first);
    StartDaemon("np02");
  }
  ASSERT_TRUE(AwaitAllDone(minutes(5)));
  EXPECT_EQ(github_.job(job).times_started, 1);
  EXPECT_EQ(github_.job(job).result, "succeeded");
  EXPECT_LE(nodes_.most_started(), 1);
  EXPECT_TRUE(Await([this] { return IsClean(); }, minutes(25))) << WhatIsLeft();
  EXPECT_LE(nodes_made_, 2);
  bool is_last = moment == kMoments - 1;
  EXPECT_FALSE(is_last && has_died) << "the life of a job has more steps: add moments";
}

INSTANTIATE_TEST_SUITE_P(Steps, AnyMomentTest,
                         ::testing::Combine(::testing::Range(0, kMoments), ::testing::Bool(),
                                            ::testing::Bool()));

// How many jobs a storm has: NODEPOOL_TEST_RUNNER_JOBS=10000 is what the specification says.
int StormJobs() {
  const char* jobs = std::getenv("NODEPOOL_TEST_RUNNER_JOBS");
  return jobs == nullptr ? nodepool::testing::Often(300, 60) : std::atoi(jobs);
}

// RUN-45, RUN-65: faults of all kinds, in the service, in ZooKeeper and on nodes; daemons die, too.
TEST_F(RunnersTest, AStormLeavesNothing) {
  services_ = {Service({Set("small", 20)})};
  nodes_.refuses = [this] { return random_.Below(50) == 0; };
  nodes_.is_silent = [this] { return random_.Below(50) == 0; };
  nodes_.dies = [this] { return random_.Below(50) == 0; };
  auto unreliable = [this](const std::string&, Moment) {
    if (random_.Below(40) == 0) throw Error(Verdict::kRetry, "injected fault");
  };
  auto begin = [&](const std::string& name) {
    Daemon& daemon = StartDaemon(name);
    daemon.check = unreliable;
    daemon.faulty->FailRandomly(0.01, random_);
  };
  begin("np01");
  begin("np02");
  const int jobs = StormJobs();
  int queued = 0;
  for (int round = 0; queued < jobs; ++round) {
    for (int i = 0; i < 20 && queued < jobs; ++i, ++queued)
      github_.Queue(seconds(1 + static_cast<int>(random_.Below(60))),
                    random_.Below(2) ? "octo/app" : "octo/lib");
    time_.Advance(seconds(30 + static_cast<int>(random_.Below(60))));
    if (round % 5 == 0) nodes_.BreakSessions();
    if (round % 8 == 7) {
      Daemon& victim = *daemons_[random_.Below(2)];
      std::string name = victim.name;
      Die(victim);
      Bury(victim);
      begin(name);
    }
  }
  for (const auto& daemon : daemons_) {
    daemon->check = nullptr;
    daemon->faulty->FailNever();
  }
  nodes_.refuses = nodes_.is_silent = nodes_.dies = [] { return false; };
  auto lost = [this] {  // runners that died with their job: GitHub notices in the end
    for (const auto& [id, runner] : std::map(github_.runners())) {
      if (runner.job != 0 && nodes_.running() == 0) github_.Finish(id, "failed");
    }
    return github_.AllDone();
  };
  ASSERT_TRUE(Await(lost, std::chrono::hours(3)));
  EXPECT_TRUE(Await([this] { return IsClean(); }, std::chrono::hours(2)));
  EXPECT_EQ(MostStarts(), 1);
  EXPECT_EQ(nodes_.most_started(), 1);
  EXPECT_LE(most_nodes_, 25);
}

}  // namespace
}  // namespace nodepool::runners
