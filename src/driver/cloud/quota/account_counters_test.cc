#include "driver/cloud/quota/account_counters.h"

#include <gtest/gtest.h>

#include "async/testing/virtual_time.h"
#include "base/error.h"

namespace nodepool::driver::cloud {

namespace {

class AccountCountersTest : public ::testing::Test {
 protected:
  Task<> Report(AccountCounters& into) {
    if (!fault.empty()) throw Error(Verdict::kRetry, fault);
    for (const auto& [name, counter] : reported) into.Set(name, counter.limit, counter.usage);
    co_return;
  }

  Task<std::optional<int>> SizeOf() {
    ++asked;
    co_return has_it ? std::optional(4) : std::nullopt;
  }

  testing::VirtualTime time;
  int asked = 0;
  bool has_it = false;
  std::map<std::string, Counter> reported = {{"cores", {24, 12}}, {"DISKS", {500, 7}}};
  std::string fault;
  AccountCounters counters{"Cloud", "region a", log::Logger("test"),
                           [this](AccountCounters& into) { return Report(into); }};
};

TEST_F(AccountCountersTest, LimitsAndUseByResource) {
  time.Run(counters.Refresh());
  EXPECT_EQ(counters.Limits({"cores", "OTHER"}), (Resources{{"cores", 24}}));
  EXPECT_EQ(counters.Usage({"cores", "DISKS"}), (Resources{{"cores", 12}, {"DISKS", 7}}));
  EXPECT_EQ(counters.Find("OTHER"), nullptr);
}

TEST_F(AccountCountersTest, TheLastValuesCountWhileTheyCannotBeRead) {
  log::Capture log;
  fault = "no";
  time.Run(counters.Refresh());
  EXPECT_EQ(log.Count("The quotas of region a could not be read; Cloud's own refusals are the limit: no"), 1);
  fault.clear();
  time.Run(counters.Refresh());
  EXPECT_EQ(counters.fault(), "");
  fault = "no";
  time.Run(counters.Refresh());
  time.Run(counters.Refresh());
  EXPECT_EQ(log.Count("could not be read; the last ones count: no"), 1) << "each cause once";
  EXPECT_EQ(counters.fault(), "no");
  EXPECT_EQ(counters.Find("cores")->limit, 24);
}

TEST_F(AccountCountersTest, AmountsOfAHostileCloud) {
  reported = {{"CPUS", {-1, 1e300}}, {"", {1, 1}}};
  time.Run(counters.Refresh());
  EXPECT_EQ(counters.Find("CPUS")->limit, 0);
  EXPECT_EQ(counters.Find("CPUS")->usage, 1e12);
  EXPECT_EQ(counters.Find(""), nullptr);
}

TEST_F(AccountCountersTest, SizesOfMachinesAreAskedForOnce) {
  MachineSizes<std::string, int> sizes([this](std::string) { return SizeOf(); });
  time.Run(sizes.Learn("large"));
  EXPECT_TRUE(sizes.IsUnknown("large"));
  has_it = true;
  time.Run(sizes.Learn("large"));
  time.Run(sizes.Learn("large"));
  EXPECT_EQ(asked, 2) << "a kind that there is never changes";
  EXPECT_EQ(*sizes.Find("large"), 4);
  EXPECT_FALSE(sizes.IsUnknown("large"));
}

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
