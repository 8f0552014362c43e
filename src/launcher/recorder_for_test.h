#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/metrics.h"
#include "model/node.h"

namespace nodepool::launcher {

// Records what it receives in the format of statsd.
class Recorder : public metrics::Sink {
 public:
  using Metric = metrics::Metric;
  void Set(const Metric& gauge, const metrics::LabelValues& labels, double value) override {
    Keep(gauge, labels, fmt::format("{}|g", value));
  }
  void Add(const Metric& counter, const metrics::LabelValues& labels, std::int64_t by) override {
    Keep(counter, labels, fmt::format("{}|c", by));
  }
  void Observe(const Metric& timing, const metrics::LabelValues& labels, Duration took) override {
    Keep(timing, labels,
         fmt::format("{}|ms", std::chrono::duration_cast<std::chrono::milliseconds>(took).count()));
  }

  // The last value of a key; empty when there is none.
  std::string Last(std::string_view key) const {
    std::string last;
    for (const std::string& line : lines) {
      if (line.starts_with(std::string(key) + ":")) last = line.substr(key.size() + 1);
    }
    return last;
  }
  std::vector<std::string> With(std::string_view text) const {
    std::vector<std::string> found;
    for (const std::string& line : lines) {
      if (line.find(text) != line.npos) found.push_back(line);
    }
    return found;
  }

  std::vector<std::string> lines;

 private:
  void Keep(const Metric& metric, const metrics::LabelValues& labels, const std::string& value) {
    lines.push_back(metrics::KeyOf(metric, metrics::Normalised(metric, labels)) + ":" + value);
  }
};

inline Node MakeNode(std::optional<NodeState> state, std::string provider, std::vector<LabelName> labels) {
  Node node;
  node.state = state;
  node.provider = ProviderName(std::move(provider));
  node.type = std::move(labels);
  return node;
}

}  // namespace nodepool::launcher
