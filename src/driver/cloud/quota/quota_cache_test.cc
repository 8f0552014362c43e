#include "driver/cloud/quota/quota_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/testing/virtual_time.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/cloud_provider_fixture_for_test.h"

namespace nodepool::driver::cloud {

namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;
using std::chrono::minutes;

struct SizedLabel : LabelConfig {
  double cores = 0;  // negative: the cloud has no such flavor
};

class SizedCloud : public ScriptedAdapter {
 public:
  using ScriptedAdapter::ScriptedAdapter;
  QuotaInformation QuotaForLabel(const LabelConfig& label) override {
    ++label_asked;
    double cores = As<SizedLabel>(label).cores;
    if (cores < 0) throw Error(Verdict::kInvalid, fmt::format("no flavor for label {}", label.name));
    return QuotaInformation::Amount({{"cores", cores}});
  }
};

class LabelNeedsTest : public ::testing::Test {
 protected:
  // The labels of a configuration that has just been read.
  struct Configuration {
    std::vector<std::shared_ptr<PoolConfig>> pools;
    const LabelConfig& At(std::size_t pool, const char* label) const {
      return *pools.at(pool)->labels.at(LabelName(label));
    }
  };
  // `order` decides which label gets which address.
  static Configuration Read(const std::vector<std::pair<std::string, double>>& order) {
    Configuration made;
    for (const char* name : {"main", "spare"}) {
      auto pool = std::make_shared<PoolConfig>();
      pool->name = PoolName(name);
      for (const auto& [label_name, cores] : order) {
        auto label = std::make_shared<SizedLabel>();
        label->name = LabelName(label_name);
        label->cores = made.pools.empty() ? cores : 2 * cores;
        pool->Offer(std::move(label));
      }
      made.pools.push_back(std::move(pool));
    }
    return made;
  }
  std::string Fault(const LabelConfig& label) {
    try {
      needs.For(label);
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  }
  ~LabelNeedsTest() override { time.Run(group.Stop()); }

  testing::VirtualTime time;
  TaskGroup group{time.loop(), log::Logger("test")};
  SeededRandom random{1};
  BlockingPool blocking_pool{0};
  Framework framework;
  SizedCloud cloud{{{time.loop(), random, blocking_pool}, framework}};
  int changes = 0;
  LabelNeeds needs{group, cloud, [this] { ++changes; }};
};

// A reload that changes other things frees labels, and equal ones get their memory.
TEST_F(LabelNeedsTest, LabelsThatGetEachOthersAddressesKeepTheirNeedsAndFaults) {
  std::vector<std::pair<std::string, double>> order = {{"small", 1}, {"huge", 8}, {"broken", -1}};
  for (int reload = 0; reload < 50; ++reload) {
    Configuration configuration = Read(order);
    for (std::size_t pool = 0; pool < 2; ++pool) {
      double times = pool == 0 ? 1 : 2;
      EXPECT_EQ(needs.For(configuration.At(pool, "small")).Get("cores"), 1 * times);
      EXPECT_EQ(needs.For(configuration.At(pool, "huge")).Get("cores"), 8 * times);
      EXPECT_FALSE(needs.IsInError(configuration.At(pool, "small")));
      EXPECT_THAT(Fault(configuration.At(pool, "broken")), HasSubstr("no flavor for label broken"));
      EXPECT_TRUE(needs.IsInError(configuration.At(pool, "broken")));
    }
    std::ranges::rotate(order, order.begin() + 1);
  }
  EXPECT_EQ(cloud.label_asked, 6) << "once for each label of each pool";
}

TEST_F(LabelNeedsTest, LabelsInEachOthersPlace) {
  Configuration configuration = Read({{"small", 1}, {"huge", 8}});
  auto& small = const_cast<SizedLabel&>(As<SizedLabel>(configuration.At(0, "small")));
  auto& huge = const_cast<SizedLabel&>(As<SizedLabel>(configuration.At(0, "huge")));
  EXPECT_EQ(needs.For(small).Get("cores"), 1);
  EXPECT_EQ(needs.For(huge).Get("cores"), 8);
  std::swap(small, huge);
  EXPECT_EQ(needs.For(small).Get("cores"), 8) << small.name.value;
  EXPECT_EQ(needs.For(huge).Get("cores"), 1) << huge.name.value;
}

// D-26
TEST_F(LabelNeedsTest, TheProbeOfAnEarlierFaultLeavesALaterOneAlone) {
  Configuration configuration = Read({{"broken", -1}});
  const LabelConfig& broken = configuration.At(0, "broken");
  Fault(broken);
  time.Advance(minutes(3));
  needs.Clear();
  EXPECT_EQ(changes, 1);
  Fault(broken);
  time.Advance(minutes(3));
  EXPECT_TRUE(needs.IsInError(broken));
  EXPECT_EQ(changes, 1);
  time.Advance(minutes(3));
  EXPECT_FALSE(needs.IsInError(broken));
  EXPECT_EQ(changes, 2);
}

const std::vector<std::string> kThree = {"a", "b", "c"};

TEST(ShortagesTest, ThePreferredOneUntilItFails) {
  Shortages shortages;
  SteadyTime now{1h};
  EXPECT_EQ(shortages.Next(kThree, {}, now), 0u);
  shortages.Add("a", now);
  EXPECT_EQ(shortages.Next(kThree, {}, now), 1u);
  EXPECT_EQ(shortages.Next(kThree, {}, now + Shortages::kLast - 1s), 1u);
  EXPECT_EQ(shortages.Next(kThree, {}, now + Shortages::kLast), 0u);
  shortages.Remove("a");
  EXPECT_EQ(shortages.Next(kThree, {}, now), 0u);
}

TEST(ShortagesTest, WithoutAnyLeftTheOldestShortageIsTriedFirst) {
  Shortages shortages;
  SteadyTime now{1h};
  shortages.Add("b", now);
  shortages.Add("a", now + 1s);
  shortages.Add("c", now + 2s);
  EXPECT_EQ(shortages.Next(kThree, {}, now + 3s), 1u);
  EXPECT_EQ(shortages.Next(kThree, {1}, now + 3s), 0u);
  EXPECT_EQ(shortages.Next(kThree, {0, 1, 2}, now + 3s), std::nullopt);
  EXPECT_EQ(shortages.Next({}, {}, now), std::nullopt);
}

TEST(ShortagesTest, AChoiceTriesEachOnceAndSaysWhy) {
  Shortages shortages;
  SteadyTime now{1h};
  shortages.Add("b", now);
  CandidateChoice choice(kThree, shortages, now);
  EXPECT_EQ(choice.name(), "a");
  EXPECT_EQ(choice.Why(now), "");
  EXPECT_EQ(choice.Explain(now, WallTime()), "a, the first choice");
  EXPECT_TRUE(choice.MoveOn(now));
  EXPECT_EQ(choice.name(), "c");
  EXPECT_EQ(choice.Why(now), "; no capacity for a, b");
  EXPECT_EQ(choice.Explain(now + 1min, FromSeconds(3600)),
            "c; no capacity for a until 01:04 UTC, b until 01:04 UTC");
  EXPECT_EQ(choice.Explain(now + 1h, FromSeconds(3600)), "c");
  EXPECT_TRUE(choice.MoveOn(now));
  EXPECT_EQ(choice.name(), "b");
  choice.Created();
  EXPECT_FALSE(shortages.Contains("b", now));
  EXPECT_FALSE(choice.MoveOn(now));
}

TEST(ShortagesTest, OnlySomeOfManyShortagesAreNamed) {
  Shortages shortages;
  SteadyTime now{1h};
  std::vector<std::string> candidates = {"a", "b", "c", "d", "e", "f"};
  for (const char* lacking : {"a", "b", "c", "d", "e"}) shortages.Add(lacking, now);
  CandidateChoice choice(candidates, shortages, now);
  EXPECT_EQ(choice.Explain(now, FromSeconds(0)),
            "f; no capacity for a until 00:05 UTC, b until 00:05 UTC, c until 00:05 UTC and 2 others");
}

TEST(ShortagesTest, WithoutCandidatesThereIsNothingToMoveTo) {
  Shortages shortages;
  CandidateChoice choice({}, shortages, SteadyTime());
  EXPECT_EQ(choice.index(), 0u);
  EXPECT_EQ(choice.name(), "");
  EXPECT_FALSE(choice.MoveOn(SteadyTime()));
}

}  // namespace

}  // namespace nodepool::driver::cloud
