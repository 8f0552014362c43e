#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace nodepool::debug {

// Samples where the process spends its processor time (gperftools); one at a time.
class CpuProfile {
 public:
  // Files are made in `folder`.
  explicit CpuProfile(std::string folder) : folder_(std::move(folder)) {}

  bool is_running() const { return is_running_; }
  // False when the profiler cannot be started.
  bool Start();
  // Ends it; returns the path of the file, which google-pprof reads.
  std::string Stop();

 private:
  std::string folder_;
  std::string path_;
  bool is_running_ = false;
};

// The functions in which the most samples of a profile's file were taken, of this very
// process, with the share of all samples. Empty for a file that is no profile.
std::vector<std::pair<std::string, double>> TopFunctions(const std::string& path, std::size_t most);

}  // namespace nodepool::debug
