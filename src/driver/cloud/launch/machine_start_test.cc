#include "driver/cloud/launch/machine_start.h"

#include <gtest/gtest.h>

#include "async/testing/virtual_time.h"
#include "driver/cloud/launch/recent_machines.h"
#include "driver/cloud/quota/machine_sizes.h"

namespace nodepool::driver::cloud {
namespace {

using std::chrono::seconds;

TEST(MachineStartTest, AbsenceMeansSomethingOnceItWasListedOrAfterAMinute) {
  testing::VirtualTime time;
  MachineStart start(time.loop(), false);
  EXPECT_FALSE(start.IsGone(start.accepted() + seconds(59)));
  EXPECT_TRUE(start.IsGone(start.accepted() + seconds(60)));
  EXPECT_FALSE(start.IsUsable(false, true));
  EXPECT_TRUE(start.IsGone(start.accepted() + seconds(1)));
  EXPECT_TRUE(start.IsUsable(true, false));
}

TEST(MachineStartTest, APublicAddressIsWaitedForHalfAMinute) {
  testing::VirtualTime time;
  MachineStart start(time.loop(), true);
  time.Advance(seconds(100));
  EXPECT_FALSE(start.IsUsable(true, false));
  time.Advance(seconds(29));
  EXPECT_FALSE(start.IsUsable(true, false));
  EXPECT_TRUE(start.IsUsable(true, true));
  time.Advance(seconds(1));
  EXPECT_TRUE(start.IsUsable(true, false));
}

TEST(RecentMachinesTest, TheyAreRecentUntilTheyAreListedOrOld) {
  testing::VirtualTime time;
  RecentMachines<std::string> recent(time.loop(), seconds(60));
  recent.Add("a", "in a zone");
  recent.Add("b", "there");
  EXPECT_EQ(recent.Find("a"), "in a zone");
  recent.Remove("a");
  EXPECT_EQ(recent.Find("a"), std::nullopt);
  time.Advance(seconds(30));
  recent.Add("b", "made again");
  time.Advance(seconds(31));
  EXPECT_EQ(recent.Find("b"), "made again");
  time.Advance(seconds(30));
  EXPECT_EQ(recent.Find("b"), std::nullopt);
}

class Sizes : public MachineSizes<std::string, double> {
 public:
  using MachineSizes::Set;
  using MachineSizes::SetUnknown;
};

TEST(MachineSizesTest, OfSeveralKindsWhatAllUseAndTheSmallestAmountOfIt) {
  Sizes sizes;
  auto need = [](const std::string& kind, double cores) {
    return Resources{{"cores", cores}, {kind, 1}, {"instances", 1}};
  };
  EXPECT_THROW(sizes.LeastNeed({"small"}, need, "not known"), Error);
  sizes.Set("small", 2);
  sizes.Set("large", 8);
  sizes.SetUnknown("none");
  EXPECT_EQ(sizes.LeastNeed({"large", "none", "small"}, need, "not known"),
            (Resources{{"cores", 2}, {"instances", 1}}));
  EXPECT_EQ(sizes.LeastNeed({"none"}, need, "not known"), std::nullopt);
  sizes.SetUnknown("small");
  EXPECT_FALSE(sizes.IsUnknown("small")) << "sizes never change";
}

}  // namespace
}  // namespace nodepool::driver::cloud
