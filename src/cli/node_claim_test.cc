#include "cli/node_claim.h"

#include <gtest/gtest.h>

#include <sstream>

#include "async/event.h"
#include "async/task_group.h"
#include "async/testing/virtual_time.h"

namespace nodepool::cli {

namespace {

using std::chrono::seconds;

// A claim that gets its nodes when the test says so.
class WaitingClaim : public NodeClaim {
 public:
  Task<> Obtain() override { return served.Wait(); }
  Task<> Keep(SteadyTime) override { co_return; }
  Task<> End() override { co_return; }
  std::vector<ClaimedNode> nodes() const override { return {}; }
  std::string Progress() const override { return "waiting; " + why; }
  std::string WhyWaiting() const override { return why; }
  Task<> AskForProgress() override {
    ++questions;
    co_return;
  }

  Event served{"nodes"};
  std::string why;
  int questions = 0;
};

class WaitLineTest : public ::testing::Test {
 protected:
  void TearDown() override {
    claim_.served.Set();
    time_.Run(tasks_.Join());
  }

  testing::VirtualTime time_;
  SeededRandom random_{1};
  std::ostringstream out_;
  std::ostringstream terminal_;
  Console console_{time_.loop(), random_, out_};
  WaitingClaim claim_;
  log::Capture log_;
  TaskGroup tasks_{time_.loop(), log::Logger("test")};
};

// WHY-6
TEST_F(WaitLineTest, WithoutATerminalTheReasonIsLoggedWhenItChanges) {
  tasks_.Spawn("obtain", ObtainShowingWhy(console_, claim_));
  claim_.why = "cloud main uses 2 of 2 instances";
  time_.Advance(seconds(4));
  EXPECT_EQ(log_.records().size(), 0u) << "most requests are served before";
  time_.Advance(seconds(2));
  EXPECT_EQ(log_.Count("Waiting: cloud main uses 2 of 2 instances"), 1);
  claim_.why = "provider cloud cannot be used: it is away";
  time_.Advance(seconds(50));
  EXPECT_EQ(log_.records().size(), 1u) << "once a minute at most";
  time_.Advance(seconds(10));
  EXPECT_EQ(log_.Count("Waiting: provider cloud cannot be used: it is away"), 1);
  time_.Advance(std::chrono::hours(1));
  EXPECT_EQ(log_.records().size(), 2u) << "it has not changed";
}

TEST_F(WaitLineTest, ATerminalHasALineInstead) {
  console_.progress = &terminal_;
  tasks_.Spawn("obtain", ObtainShowingWhy(console_, claim_));
  claim_.why = "cloud main uses 2 of 2 instances";
  time_.Advance(seconds(10));
  EXPECT_NE(terminal_.str().find("waiting; cloud main uses 2 of 2 instances"), std::string::npos);
  EXPECT_EQ(log_.records().size(), 0u);
}

}  // namespace

}  // namespace nodepool::cli
