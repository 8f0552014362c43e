#include "daemon/memory.h"

#include <malloc.h>

#include <fstream>
#include <string>

namespace nodepool::daemon {
namespace {

constexpr int kArenas = 2;
constexpr std::size_t kMuch = std::size_t{64} << 20;

std::size_t ResidentHeap() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::size_t kilobytes = 0;
    if (word == "RssAnon:" && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

}  // namespace

void LimitArenas() { ::mallopt(M_ARENA_MAX, kArenas); }

std::size_t UnusedMemory() {
  struct mallinfo2 info = ::mallinfo2();
  std::size_t used = info.uordblks + info.hblkhd;
  std::size_t resident = ResidentHeap();
  return resident > used ? resident - used : 0;
}

Task<> ReturnUnusedMemory(Loop& loop, BlockingPool& pool, Duration period) {
  auto give_back = [] {
    if (UnusedMemory() > kMuch) ::malloc_trim(0);
  };
  while (true) {
    co_await loop.SleepFor(period);
    co_await OnBlockingPool(pool, give_back);
  }
}

}  // namespace nodepool::daemon
