#include "web/live/sample_series.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace nodepool::web {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxTimes = 2000;
constexpr std::size_t kMaxProviders = 100;

void AddTime(std::vector<double>& times, Duration took) {
  if (times.size() < kMaxTimes) times.push_back(std::max(0.0, std::chrono::duration<double>(took).count()));
}

json::value ToJson(const Percentiles& of) {
  return json::object{{"count", of.count}, {"p50", of.p50}, {"p95", of.p95}, {"p99", of.p99}};
}

json::value ToJson(const std::map<ProviderName, Launches>& launches) {
  json::object by_provider;
  for (const auto& [name, of] : launches)
    by_provider[name.value] = json::object{{"ready", of.ready}, {"failed", of.failed}, {"errors", of.errors}};
  return by_provider;
}

json::object ToJson(const CountsByState& counts) {
  json::object by_state;
  for (const auto& [state, count] : counts) by_state[state] = count;
  return by_state;
}

JsonType PercentilesType() {
  return ObjectOf({{"count", Whole(), "how many have ended in the interval"},
                   {"p50", Number(), "half took at most so many seconds"},
                   {"p95", Number(), "95 of 100"},
                   {"p99", Number(), "99 of 100"}});
}

JsonType LaunchesType() {
  return MapOf(ObjectOf(
      {{"ready", Whole(), "nodes that became ready"},
       {"failed", Whole(), "nodes that were given up"},
       {"errors", Whole(), "attempts of this launcher that failed, also where a later one was good"}}));
}

}  // namespace

Percentiles PercentilesOf(std::vector<double> seconds) {
  if (seconds.empty()) return {};
  std::ranges::sort(seconds);
  auto at = [&](double share) {
    auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(seconds.size())));
    return seconds[rank - 1];
  };
  return {seconds.size(), at(0.50), at(0.95), at(0.99)};
}

void SampleSeries::AddWait(Duration took) { AddTime(waits_, took); }

void SampleSeries::AddLaunch(const ProviderName& provider, Duration took) {
  AddTime(launches_, took);
  if (Launches* launches = Of(provider)) ++launches->ready;
}

void SampleSeries::AddFailedLaunch(const ProviderName& provider) {
  if (Launches* launches = Of(provider)) ++launches->failed;
}

Launches* SampleSeries::Of(const ProviderName& provider) {
  auto found = by_provider_.find(provider);
  if (found != by_provider_.end()) return &found->second;
  return by_provider_.size() < kMaxProviders ? &by_provider_[provider] : nullptr;
}

void SampleSeries::CountErrors(const std::map<ProviderName, double>& now) {
  for (const auto& [provider, errors] : now) {
    int more = static_cast<int>(errors - launch_errors_[provider]);
    if (more <= 0) continue;
    if (Launches* launches = Of(provider)) launches->errors += more;
  }
  launch_errors_ = now;
}

const Sample& SampleSeries::Close(WallTime now, Level level) {
  Sample sample;
  sample.at = now;
  sample.waits = PercentilesOf(std::exchange(waits_, {}));
  sample.launches = PercentilesOf(std::exchange(launches_, {}));
  CountErrors(level.launch_errors);
  sample.by_provider = std::exchange(by_provider_, {});
  sample.api_calls = level.api_calls - std::exchange(api_calls_, level.api_calls);
  sample.api_failures = level.api_failures - std::exchange(api_failures_, level.api_failures);
  sample.level = std::move(level);
  samples_.push_back(std::move(sample));
  if (samples_.size() > capacity_) samples_.pop_front();
  return samples_.back();
}

const FieldTable<Sample>& SampleFields() {
  static const FieldTable<Sample> fields({
      {{"at", Number(), "end of the interval, in seconds since the epoch"},
       [](const Sample& s) { return json::value(ToSeconds(s.at)); }},
      {{"nodes", MapOf(Whole()), "number of nodes by state"},
       [](const Sample& s) { return json::value(ToJson(s.level.nodes)); }},
      {{"nodes_by_provider", MapOf(MapOf(Whole())), "number of nodes by provider and state"},
       [](const Sample& s) {
         json::object by_provider;
         for (const auto& [name, counts] : s.level.nodes_by_provider)
           by_provider[name.value] = ToJson(counts);
         return json::value(std::move(by_provider));
       }},
      {{"requests_waiting", Whole(), "neither fulfilled nor failed"},
       [](const Sample& s) { return json::value(s.level.requests_waiting); }},
      {{"waits", PercentilesType(), "of requests: from their creation until they were fulfilled"},
       [](const Sample& s) { return ToJson(s.waits); }},
      {{"launch_times", PercentilesType(), "of nodes: until they were ready"},
       [](const Sample& s) { return ToJson(s.launches); }},
      {{"launches", LaunchesType(), "that have ended, by provider"},
       [](const Sample& s) { return ToJson(s.by_provider); }},
      {{"api_calls", Number(), "of clouds, by this launcher"},
       [](const Sample& s) { return json::value(s.api_calls); }},
      {{"api_failures", Number(), "those without an answer"},
       [](const Sample& s) { return json::value(s.api_failures); }},
  });
  return fields;
}

}  // namespace nodepool::web
