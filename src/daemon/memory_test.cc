#include "daemon/memory.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "async/task_group.h"
#include "async/testing/virtual_time.h"

namespace nodepool::daemon {
namespace {

constexpr std::size_t kMegabyte = 1 << 20;

// As a large answer of a cloud does: what is freed is surrounded by what stays.
std::vector<std::unique_ptr<std::string>> LeaveHoles() {
  std::vector<std::unique_ptr<std::string>> strings;
  for (int i = 0; i < 100'000; ++i) strings.push_back(std::make_unique<std::string>(2000, 'x'));
  for (std::size_t i = 0; i < strings.size(); ++i) {
    if (i % 100 != 0) strings[i].reset();
  }
  return strings;
}

TEST(MemoryTest, WhatIsUnusedGoesBackToTheSystem) {
  LimitArenas();
  std::size_t before = UnusedMemory();
  auto strings = LeaveHoles();
  if (::mallinfo2().uordblks == 0) GTEST_SKIP() << "a sanitizer's allocator";
  EXPECT_GT(UnusedMemory(), before + 150 * kMegabyte);
  testing::VirtualTime time;
  BlockingPool pool(1);
  TaskGroup tasks(time.loop(), log::Logger("test"));
  tasks.Spawn("return unused memory", ReturnUnusedMemory(time.loop(), pool));
  time.Advance(std::chrono::minutes(1));
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (UnusedMemory() > before + 30 * kMegabyte && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_LT(UnusedMemory(), before + 30 * kMegabyte);
  time.RunUntil([] { return false; }, std::chrono::seconds(1));
  time.Run(tasks.Stop());
}

}  // namespace
}  // namespace nodepool::daemon
