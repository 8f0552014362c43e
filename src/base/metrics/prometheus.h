#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/metrics/metrics.h"

namespace nodepool::metrics {

// Stores counters and measurements, to be shown in Prometheus' text format.
//
// A metric has at most kMaxSeries combinations of label values; in further ones the normalised
// labels, whose values come from clients, become "other".
class Prometheus final : public Sink {
 public:
  static constexpr std::size_t kMaxSeries = 1000;
  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

  void Set(const Metric& gauge, const LabelValues& labels, double value) override;
  void Add(const Metric& counter, const LabelValues& labels, std::int64_t by = 1) override;
  void Observe(const Metric& timing, const LabelValues& labels, Duration took) override;

  // Sum of a counter's series whose last label has this value.
  double Sum(const Metric& counter, std::string_view last_label) const;
  // Sums of a counter's series whose last label begins so, by their first label.
  std::map<std::string, double> SumsByFirst(const Metric& counter, std::string_view last_label_begin) const;

  // Everything stored so far, and the gauges that `report` sets now; ordered by name.
  std::string Text(const GaugeReport& report = {}) const;

 private:
  struct Series {
    double value = 0;                    // of a timing: the sum in seconds
    std::uint64_t count = 0;             // timings only
    std::vector<std::uint64_t> buckets;  // timings only; not cumulative
  };
  struct Family {
    const Metric* metric = nullptr;
    std::map<LabelValues, Series> series;
  };

  Series* Find(const Metric& metric, const LabelValues& labels);
  static void Write(const Family& family, std::string& out);

  std::map<std::string_view, Family> families_;  // by name
};

}  // namespace nodepool::metrics
