#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "web/api/field_table.h"

namespace nodepool::web {

// How long something took, of everything that ended in an interval; in seconds.
struct Percentiles {
  std::size_t count = 0;
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
};
// The nearest rank; zeros of nothing.
Percentiles PercentilesOf(std::vector<double> seconds);

// Launches that have ended.
struct Launches {
  int ready = 0;
  int failed = 0;
  int errors = 0;  // attempts of this launcher that failed, also those of launches that succeeded later
};

using CountsByState = std::map<std::string_view, std::size_t>;

// What is true at one time.
struct Level {
  CountsByState nodes;
  std::map<ProviderName, CountsByState> nodes_by_provider;
  std::map<ProviderName, double> launch_errors;  // since the launcher started; grows
  std::size_t requests_waiting = 0;
  double api_calls = 0;     // of clouds, since the launcher started; grows
  double api_failures = 0;  // those without an answer
};

// An interval: the level at its end, and what happened in it.
struct Sample {
  WallTime at{};  // the end
  Level level;
  Percentiles waits;     // of requests, from their creation until they were fulfilled
  Percentiles launches;  // of nodes, until they were ready
  std::map<ProviderName, Launches> by_provider;
  double api_calls = 0;
  double api_failures = 0;
};
const FieldTable<Sample>& SampleFields();

// Samples of intervals of one length, the latest of them. Bounded: of an interval's times the first 2,000
// count, and 100 providers.
class SampleSeries {
 public:
  explicit SampleSeries(std::size_t capacity) : capacity_(capacity) {}

  void AddWait(Duration took);
  void AddLaunch(const ProviderName& provider, Duration took);
  void AddFailedLaunch(const ProviderName& provider);
  // Ends the interval and begins the next.
  const Sample& Close(WallTime now, Level level);

  const std::deque<Sample>& samples() const { return samples_; }  // the oldest first

 private:
  Launches* Of(const ProviderName& provider);
  void CountErrors(const std::map<ProviderName, double>& now);

  std::size_t capacity_;
  std::deque<Sample> samples_;
  std::vector<double> waits_;  // of the interval that is open; the same for the next two
  std::vector<double> launches_;
  std::map<ProviderName, Launches> by_provider_;
  std::map<ProviderName, double> launch_errors_;  // at its beginning; the same for the next two
  double api_calls_ = 0;
  double api_failures_ = 0;
};

}  // namespace nodepool::web
