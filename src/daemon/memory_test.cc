#include "daemon/memory.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace nodepool::daemon {

namespace {

constexpr std::size_t kMegabyte = 1'000'000;

std::size_t ResidentBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::size_t kilobytes = 0;
    if (word == "RssAnon:" && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

// As a large answer of a cloud does: what is freed is surrounded by what stays.
std::vector<std::unique_ptr<std::string>> LeaveHoles() {
  std::vector<std::unique_ptr<std::string>> strings;
  for (int i = 0; i < 100'000; ++i) strings.push_back(std::make_unique<std::string>(2000, 'x'));
  EXPECT_GT(ResidentBytes(), 150 * kMegabyte);
  for (std::size_t i = 0; i < strings.size(); ++i) {
    if (i % 100 != 0) strings[i].reset();
  }
  return strings;
}

TEST(MemoryTest, WhatIsUnusedGoesBackToTheSystem) {
  if (!ReturnUnusedMemory()) GTEST_SKIP() << "a sanitizer's allocator";
  std::size_t before = ResidentBytes();
  auto strings = LeaveHoles();
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (ResidentBytes() > before + 30 * kMegabyte && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_LT(ResidentBytes(), before + 30 * kMegabyte);
}

}  // namespace

}  // namespace nodepool::daemon
