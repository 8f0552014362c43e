#include "web/live/sample_series.h"

#include <gtest/gtest.h>

#include <numeric>

namespace nodepool::web {
namespace {

using std::chrono::seconds;

WallTime AtSecond(int second) { return FromSeconds(1'700'000'000 + second); }

TEST(SampleSeries, PercentilesAreOfTheNearestRank) {
  std::vector<double> times(100);
  std::iota(times.rbegin(), times.rend(), 1);
  Percentiles of = PercentilesOf(times);
  EXPECT_EQ(of.count, 100u);
  EXPECT_EQ(of.p50, 50);
  EXPECT_EQ(of.p95, 95);
  EXPECT_EQ(of.p99, 99);
  EXPECT_EQ(PercentilesOf({3}).p99, 3);
  EXPECT_EQ(PercentilesOf({}).count, 0u);
}

TEST(SampleSeries, AnIntervalHasWhatHappenedInIt) {  // PAGE-6
  SampleSeries series(10);
  ProviderName cloud("cloud");
  series.AddWait(seconds(4));
  series.AddLaunch(cloud, seconds(2));
  series.AddFailedLaunch(cloud);
  Level level;
  level.api_calls = 7;
  const Sample& first = series.Close(AtSecond(10), level);
  EXPECT_EQ(first.waits.p50, 4);
  EXPECT_EQ(first.launches.p50, 2);
  EXPECT_EQ(first.by_provider.at(cloud).ready, 1);
  EXPECT_EQ(first.by_provider.at(cloud).failed, 1);
  EXPECT_EQ(first.api_calls, 7);
  level.api_calls = 9;
  const Sample& second = series.Close(AtSecond(20), level);
  EXPECT_EQ(second.waits.count, 0u);
  EXPECT_TRUE(second.by_provider.empty());
  EXPECT_EQ(second.api_calls, 2);
}

TEST(SampleSeries, TheOldestSamplesAreDropped) {
  SampleSeries series(3);
  for (int i = 0; i < 5; ++i) series.Close(AtSecond(i), {});
  ASSERT_EQ(series.samples().size(), 3u);
  EXPECT_EQ(series.samples().front().at, AtSecond(2));
}

TEST(SampleSeries, NothingGrowsWithinAnInterval) {
  SampleSeries series(3);
  for (int i = 0; i < 5000; ++i) {
    series.AddWait(seconds(i));
    series.AddLaunch(ProviderName("cloud-" + std::to_string(i)), seconds(1));
  }
  const Sample& sample = series.Close(AtSecond(0), {});
  EXPECT_EQ(sample.waits.count, 2000u);
  EXPECT_EQ(sample.by_provider.size(), 100u);
}

TEST(SampleSeries, AClockThatWasSetBackMakesNoNegativeTimes) {
  SampleSeries series(3);
  series.AddWait(seconds(-5));
  EXPECT_EQ(series.Close(AtSecond(0), {}).waits.p50, 0);
}

}  // namespace
}  // namespace nodepool::web
