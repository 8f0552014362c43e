#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace nodepool::metrics {

// What the daemons measure. A metric is declared once, as data; code that measures names the
// declaration and passes label values and a number. The sinks decide where it is sent.

enum class Kind {
  kGauge,    // a value that goes up and down
  kCounter,  // events
  kTiming,   // how long something took; a histogram in Prometheus
};

// A declaration; a constant at namespace scope.
//
// `key` is the statsd key. A word in braces names a label and is replaced by its value:
// "nodepool.provider.{provider}.nodes.{state}". "{requestor~}" is a label whose values are
// normalised: characters with a meaning in the syntax become "_" (launcher.md 27.1).
struct Metric {
  Kind kind;
  std::string_view key;
  std::string_view name;  // in Prometheus; empty: sent to statsd only
  std::string_view help;
};

// In the order of the braces in the key.
using LabelValues = std::vector<std::string>;

struct Label {
  std::string name;
  bool is_normalised = false;
};
std::vector<Label> LabelsOf(const Metric& metric);

// The values as all sinks show them.
LabelValues Normalised(const Metric& metric, LabelValues values);
// The key with its label values, which are already normalised.
std::string KeyOf(const Metric& metric, const LabelValues& values);

// Receives measurements; cheap, never blocks, never throws because of a value.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void Set(const Metric& gauge, const LabelValues& labels, double value) = 0;
  virtual void Add(const Metric& counter, const LabelValues& labels, std::int64_t by = 1) = 0;
  virtual void Observe(const Metric& timing, const LabelValues& labels, Duration took) = 0;
};

// The interface for code that measures: passes measurements on to the configured sinks. Without any
// it does nothing, as in tests.
class Metrics final : public Sink {
 public:
  Metrics() = default;
  // Either may be null; they outlive this.
  Metrics(Sink* pushed, Sink* scraped) : pushed_(pushed), scraped_(scraped) {}

  void Set(const Metric& gauge, const LabelValues& labels, double value) override;
  void Add(const Metric& counter, const LabelValues& labels, std::int64_t by = 1) override;
  void Observe(const Metric& timing, const LabelValues& labels, Duration took) override;

  // The sink that needs gauges sent repeatedly (statsd), or null. Prometheus is not one: it reads
  // the current values when it scrapes.
  Sink* pushed() const { return pushed_; }

 private:
  Sink* pushed_ = nullptr;
  Sink* scraped_ = nullptr;
};

// Sets a group of gauges.
using GaugeReport = std::function<void(Sink&)>;

// Reports a group of gauges repeatedly. A gauge that has left the group is reported as 0 once, so
// that no receiver shows its last value for ever.
class RepeatedGauges {
 public:
  void Report(Sink& to, const GaugeReport& report);
  // Whether `report` lacks a gauge that was reported before.
  bool LacksAny(const GaugeReport& report) const;

 private:
  using Keys = std::set<std::pair<const Metric*, LabelValues>>;
  Keys reported_;
};

// The reference page of the declarations, in Markdown.
std::string ReferencePage(const std::vector<const Metric*>& metrics);

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
