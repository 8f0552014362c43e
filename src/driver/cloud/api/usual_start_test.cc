#include "driver/cloud/api/usual_start.h"

#include <gtest/gtest.h>

namespace nodepool::driver::cloud::api {
namespace {

using namespace std::chrono_literals;

// What somebody who follows the pauses does for one machine that starts after `takes`.
struct Followed {
  int readings = 0;
  Duration late{};  // from the start to the reading that shows it
};
Followed Follow(UsualStart& usual, Duration takes) {
  Followed followed;
  Duration age{};
  while (true) {
    Duration pause = usual.PauseAt(age);
    age += pause;
    usual.Reading(pause);
    ++followed.readings;
    if (age >= takes) break;
  }
  followed.late = age - takes;
  usual.Started(age);
  return followed;
}

TEST(UsualStartTest, UntilSomeAreKnownItIsReadAtEachPause) {
  UsualStart usual(1s);
  EXPECT_EQ(usual.PauseAt(0s), 1s);
  usual.Started(20s);
  usual.Started(20s);
  EXPECT_EQ(usual.PauseAt(19s), 1s);
}

TEST(UsualStartTest, StartsThatAreAlikeAreSeenSoonAndWithFewerReadings) {
  UsualStart usual(1s);
  for (int i = 0; i < 20; ++i) Follow(usual, 20s + i % 5 * 100ms);
  for (int i = 0; i < 5; ++i) {
    Followed followed = Follow(usual, 20s + i * 100ms);
    EXPECT_LE(followed.late, 100ms);
    EXPECT_LE(followed.readings, 21);
  }
}

TEST(UsualStartTest, StartsThatDifferCostNoMoreReadingsThanPauses) {
  UsualStart usual(1s);
  int readings = 0, seconds = 0;
  for (int i = 0; i < 100; ++i) {
    int takes = 5 + i * 7 % 40;
    readings += Follow(usual, std::chrono::seconds(takes)).readings;
    seconds += takes;
  }
  EXPECT_LE(readings, seconds + 100);
}

TEST(UsualStartTest, ShortStartsCostNoMoreReadingsEither) {
  UsualStart usual(1s);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Follow(usual, 300ms).readings, 1);
  for (int i = 0; i < 20; ++i) usual.Started(300ms);
  EXPECT_EQ(usual.PauseAt(0s), 1s);
}

TEST(UsualStartTest, OneThatTakesLongerIsFollowedAsBefore) {
  UsualStart usual(1s);
  for (int i = 0; i < 5; ++i) usual.Started(10s);
  usual.Reading(1min);
  EXPECT_LT(usual.PauseAt(10s), 200ms);
  EXPECT_EQ(usual.PauseAt(11s), 1s);
}

TEST(UsualStartTest, AnEarlyFailureIsSeenAfterTwoPauses) {
  UsualStart usual(1s);
  for (int i = 0; i < 5; ++i) usual.Started(100s);
  EXPECT_EQ(usual.PauseAt(0s), 2s);
}

}  // namespace
}  // namespace nodepool::driver::cloud::api
