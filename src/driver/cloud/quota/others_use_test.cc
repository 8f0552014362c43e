#include "driver/cloud/quota/others_use.h"

#include <gtest/gtest.h>

#include "async/testing/virtual_time.h"

namespace nodepool::driver::cloud {
namespace {

class OthersUseTest : public ::testing::Test {
 protected:
  ~OthersUseTest() override { time.Run(tasks.Stop()); }

  testing::VirtualTime time;
  TaskGroup tasks{time.loop(), log::Logger("test")};
  struct Counted : Framework {
    void QuotaChanged() override { ++read_again; }
    int read_again = 0;
  } framework;
  int& read_again = framework.read_again;
  OthersUse others{tasks, framework};
};

TEST_F(OthersUseTest, ItIsWhatIsUsedWithoutOurOwn) {
  EXPECT_FALSE(others.Find());
  others.Compare({{"cores", 12}, {"instances", 3}, {"disks", 1}}, {{"cores", 4}, {"instances", 5}});
  EXPECT_EQ(others.Find()->Get("cores"), 8);
  EXPECT_EQ(others.Find()->Get("instances"), 0) << "the figure lags";
  EXPECT_EQ(others.Find()->Get("disks"), 1);
}

TEST_F(OthersUseTest, AChangeIsReadAgainOnceItHasSettled) {
  others.Compare({{"cores", 4}}, {{"cores", 4}});
  time.Advance(std::chrono::minutes(2));
  EXPECT_EQ(read_again, 0) << "others use nothing";
  others.Compare({{"cores", 8}}, {{"cores", 4}});
  others.Compare({{"cores", 9}}, {{"cores", 4}});
  time.Advance(std::chrono::seconds(59));
  EXPECT_EQ(read_again, 0);
  time.Advance(std::chrono::minutes(2));
  EXPECT_EQ(read_again, 1);
  others.Compare({{"cores", 9}}, {{"cores", 4}});
  time.Advance(std::chrono::minutes(2));
  EXPECT_EQ(read_again, 1) << "nothing has changed";
}

}  // namespace
}  // namespace nodepool::driver::cloud
