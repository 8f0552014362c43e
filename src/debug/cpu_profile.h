#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace nodepool::debug {

// Where processor time was spent during a profile.
struct ProfileReport {
  struct Thread {
    int id;  // the kernel's thread id
    std::string name;
    Duration time;
  };
  std::vector<std::pair<std::string, double>> functions;  // the top ones, with their share of all samples
  std::vector<Thread> threads;                            // those that still run, the busiest first
  std::string path;  // of the file, for google-pprof; empty: it is removed
};

// Text for a log record.
std::string ToText(const ProfileReport& report);

// Samples where the process spends its processor time (gperftools); one at a time.
class CpuProfile {
 public:
  // Files remain in `folder`; without one they are removed once they have been read.
  explicit CpuProfile(std::optional<std::string> folder) : folder_(std::move(folder)) {}
  ~CpuProfile() {
    if (is_running_) Stop();
  }
  CpuProfile(const CpuProfile&) = delete;
  CpuProfile& operator=(const CpuProfile&) = delete;

  bool is_running() const { return is_running_; }
  // False when the profiler cannot be started.
  bool Start();
  ProfileReport Stop();

 private:
  std::optional<std::string> folder_;
  std::string path_;
  std::map<int, Duration> times_at_start_;  // of the threads
  bool is_running_ = false;
};

// The functions in which the most samples of a profile's file were taken, in this very process,
// with the share of all samples. Empty for a file that is not a profile.
std::vector<std::pair<std::string, double>> TopFunctions(const std::string& path, std::size_t max_count);

}  // namespace nodepool::debug
