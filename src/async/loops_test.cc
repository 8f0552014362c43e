#include "async/loops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/testing/virtual_time.h"

namespace nodepool {
namespace {

using Seen = std::vector<std::string>;

struct LoopWithoutLocks {
  std::string name;
  Seen& seen;
  void Start() { seen.push_back(name + " starts"); }
  Task<> Stop() {
    seen.push_back(name + " stops");
    co_return;
  }
};

struct LoopWithLocks : LoopWithoutLocks {
  void SessionLost() { seen.push_back(name + " drops"); }
};

TEST(LoopsTest, StartInTheirOrderStopInTheOppositeOneAndThoseWithLocksDropTheirWork) {
  testing::VirtualTime time;
  Seen seen;
  LoopWithLocks builds{{"builds", seen}};
  LoopWithoutLocks statistics{"statistics", seen};
  Loops loops;
  loops.Add("builds", builds);
  loops.Add("statistics", statistics);
  loops.Start();
  loops.SessionLost();
  StopSteps steps(time.loop(), log::Logger("test"), time.loop().SteadyNow() + std::chrono::seconds(1));
  time.Run(loops.Stop(steps));
  EXPECT_THAT(seen, ::testing::ElementsAre("builds starts", "statistics starts", "builds drops",
                                           "statistics stops", "builds stops"));
}

}  // namespace
}  // namespace nodepool
