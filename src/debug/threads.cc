#include "debug/threads.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace nodepool::debug {

std::vector<int> Threads() {
  std::vector<int> threads;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    threads.push_back(std::atoi(entry.path().filename().c_str()));
  }
  std::ranges::sort(threads);
  return threads;
}

std::string NameOf(int thread) {
  std::ifstream file(fmt::format("/proc/self/task/{}/comm", thread));
  std::string name;
  std::getline(file, name);
  return name;
}

std::optional<Duration> CpuTimeOf(int thread) {
  // The id of the thread's clock, as pthread_getcpuclockid computes it.
  constexpr clockid_t kOfOneThread = 4, kScheduled = 2;
  clockid_t clock = (~static_cast<clockid_t>(thread) << 3) | kOfOneThread | kScheduled;
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return std::nullopt;
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace nodepool::debug
