#include "debug/cpu_profile.h"

#include <fmt/format.h>
#include <gperftools/profiler.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "debug/stack_dump.h"

namespace nodepool::debug {
namespace {

// The file: a header of words {0, 3, 0, period, 0}, samples {count, depth, addresses...}
// and the trailer {0, 1, 0}; then text.
std::vector<std::uintptr_t> Words(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::uintptr_t> words;
  std::uintptr_t word = 0;
  while (file.read(reinterpret_cast<char*>(&word), sizeof(word))) words.push_back(word);
  return words;
}

constexpr std::size_t kTopFunctions = 20;

// The profiler prints a line of its own to the C library's standard error, which is assigned meanwhile: other
// threads still write theirs through C++'s streams and the log.
void StopQuietly() {
  static std::FILE* const nowhere = std::fopen("/dev/null", "w");
  std::FILE* const before = stderr;
  if (nowhere != nullptr) stderr = nowhere;
  ProfilerStop();
  stderr = before;
}

std::map<int, Duration> CpuTimes() {
  std::map<int, Duration> times;
  for (int thread : Threads()) {
    if (std::optional<Duration> time = CpuTimeOf(thread)) times[thread] = *time;
  }
  return times;
}

}  // namespace

bool CpuProfile::Start() {
  path_ = fmt::format("{}/nodepool-{}-XXXXXX.prof",
                      folder_.value_or(std::filesystem::temp_directory_path().string()), getpid());
  constexpr int kSuffix = 5;
  int file = mkstemps(path_.data(), kSuffix);  // a new file, even if other programs write to the folder
  if (file < 0) return false;
  close(file);
  is_running_ = ProfilerStart(path_.c_str()) != 0;
  times_at_start_ = CpuTimes();
  return is_running_;
}

ProfileReport CpuProfile::Stop() {
  StopQuietly();
  is_running_ = false;
  ProfileReport report{TopFunctions(path_, kTopFunctions), {}, path_};
  for (const auto& [thread, time] : CpuTimes()) {
    report.threads.push_back({thread, NameOf(thread), time - times_at_start_[thread]});
  }
  std::ranges::stable_sort(report.threads, std::ranges::greater(), &ProfileReport::Thread::time);
  if (!folder_) {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
    report.path.clear();
  }
  return report;
}

std::string ToText(const ProfileReport& report) {
  std::string text = "Most time was spent in:";
  for (const auto& [function, share] : report.functions) {
    text += fmt::format("\n{:5.1f}% {}", 100 * share, function);
  }
  text += "\nProcessor time by thread:";
  for (const ProfileReport::Thread& thread : report.threads) {
    text += fmt::format("\n{:.3f} s thread {} {}", std::chrono::duration<double>(thread.time).count(),
                        thread.id, thread.name);
  }
  if (!report.path.empty()) text += fmt::format("\nFor google-pprof: {}", report.path);
  return text;
}

std::vector<std::pair<std::string, double>> TopFunctions(const std::string& path, std::size_t max_count) {
  std::vector<std::uintptr_t> words = Words(path);
  std::map<std::string, std::uintptr_t> by_function;
  std::uintptr_t total = 0;
  constexpr std::size_t kHeader = 5;
  for (std::size_t i = kHeader; i + 2 < words.size() && words[i] != 0;) {
    std::uintptr_t count = words[i], depth = words[i + 1];
    if (depth == 0 || depth > words.size() - i - 2) break;
    by_function[SymbolOf(reinterpret_cast<const void*>(words[i + 2]))] += count;
    total += count;
    i += 2 + depth;
  }
  std::vector<std::pair<std::string, double>> top;
  for (const auto& [function, count] : by_function) {
    top.emplace_back(function, static_cast<double>(count) / static_cast<double>(total));
  }
  std::sort(top.begin(), top.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  if (top.size() > max_count) top.resize(max_count);
  return top;
}

}  // namespace nodepool::debug
