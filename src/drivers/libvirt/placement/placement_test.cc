#include "drivers/libvirt/placement/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace nodepool::drivers::libvirt {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

HostRoom RoomOf(std::string name, double cores, double used_cores) {
  HostRoom host;
  host.name = std::move(name);
  host.limit = {kNoLimit, cores, 100000, 1000};
  host.used = {used_cores, used_cores, used_cores * 100, 0};
  return host;
}

constexpr Need kFour{1, 4, 1024, 10};

// LV-27
TEST(Placement, SpreadsOrPacks) {
  std::vector<HostRoom> hosts = {RoomOf("a", 16, 8), RoomOf("b", 16, 4), RoomOf("c", 16, 13)};
  EXPECT_EQ(ChooseHost(hosts, kFour, Placement::kSpread), "b");
  EXPECT_EQ(ChooseHost(hosts, kFour, Placement::kPack), "a") << "c has no room";
}

TEST(Placement, EqualHostsAreTakenByName) {
  std::vector<HostRoom> hosts = {RoomOf("b", 8, 0), RoomOf("a", 8, 0)};
  EXPECT_EQ(ChooseHost(hosts, kFour, Placement::kSpread), "a");
  EXPECT_EQ(ChooseHost(hosts, kFour, Placement::kPack), "a");
}

// LV-26
TEST(Placement, PartsOfSeveralHostsAreNoRoom) {
  std::vector<HostRoom> hosts = {RoomOf("a", 8, 4), RoomOf("b", 8, 4)};
  auto chosen = ChooseHost(hosts, Need{1, 8, 1024, 10}, Placement::kSpread);
  ASSERT_FALSE(chosen);
  EXPECT_FALSE(chosen.error().is_forever);
  EXPECT_EQ(chosen.error().reasons, "a: 4 of 8 cores free, needs 8; b: 4 of 8 cores free, needs 8");
}

TEST(Placement, WhatFitsNoEmptyHostNeverFits) {
  std::vector<HostRoom> hosts = {RoomOf("a", 8, 4)};
  auto chosen = ChooseHost(hosts, Need{1, 9, 1024, 10}, Placement::kSpread);
  ASSERT_FALSE(chosen);
  EXPECT_TRUE(chosen.error().is_forever);
  hosts.push_back(RoomOf("b", 0, 0));
  hosts.back().unusable = "it cannot be reached";
  chosen = ChooseHost(hosts, Need{1, 9, 1024, 10}, Placement::kSpread);
  EXPECT_FALSE(chosen.error().is_forever) << "b may be large enough";
  EXPECT_THAT(chosen.error().reasons, ::testing::HasSubstr("b: it cannot be reached"));
}

// LV-23
TEST(Placement, HostsWithTheImageComeBeforeThoseThatCanGetIt) {
  std::vector<HostRoom> hosts = {RoomOf("a", 16, 0), RoomOf("b", 16, 12)};
  hosts[0].has_image = false;
  hosts[0].can_get_image = true;
  EXPECT_EQ(ChooseHost(hosts, kFour, Placement::kSpread), "b");
  hosts[1].used.cores = 13;
  EXPECT_EQ(ChooseHost(hosts, kFour, Placement::kSpread), "a");
}

TEST(Placement, OnlyHostsWithTheImage) {
  std::vector<HostRoom> hosts = {RoomOf("a", 16, 0), RoomOf("b", 16, 8)};
  hosts[0].has_image = false;
  EXPECT_EQ(ChooseHost(hosts, kFour, Placement::kSpread), "b");
}

// LV-27
TEST(Placement, NeverExceedsAHost) {
  SeededRandom random(1);
  for (int round = 0; round < 1000; ++round) {
    std::vector<HostRoom> hosts;
    for (const char* name : {"a", "b", "c"}) hosts.push_back(RoomOf(name, double(random.Below(16)), 0));
    while (true) {
      Need need{1, double(1 + random.Below(8)), 100, 1};
      auto chosen = ChooseHost(hosts, need, round % 2 == 0 ? Placement::kSpread : Placement::kPack);
      if (!chosen) break;
      auto host = std::ranges::find(hosts, *chosen, &HostRoom::name);
      host->used.Add(need);
      ASSERT_LE(host->used.cores, host->limit.cores);
    }
  }
}

}  // namespace
}  // namespace nodepool::drivers::libvirt
