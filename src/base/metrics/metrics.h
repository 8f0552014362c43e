#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"

// What the daemons measure. A metric is declared once, as data; whoever measures
// names the declaration and gives the label values and a number. Where it goes is a
// sink's matter.
namespace nodepool::metrics {

enum class Kind {
  kGauge,    // a value that goes up and down
  kCounter,  // events
  kTiming,   // how long something took; a histogram in Prometheus
};

// A declaration; a constant at namespace scope.
//
// `key` is the statsd key. A word in braces names a label and stands for its value:
// "nodepool.provider.{provider}.nodes.{state}". "{requestor~}" is a label whose values
// are normalised: what would be taken for syntax becomes "_" (launcher.md 27.1).
struct Metric {
  Kind kind;
  std::string_view key;
  std::string_view name;  // in Prometheus; empty: told to statsd only
  std::string_view help;
};

// In the order of the braces in the key.
using LabelValues = std::vector<std::string>;

struct Label {
  std::string name;
  bool is_normalised = false;
};
std::vector<Label> LabelsOf(const Metric& metric);

// The values as every sink shows them.
LabelValues Normalised(const Metric& metric, LabelValues values);
// The key with its label values, which are normalised already.
std::string KeyOf(const Metric& metric, const LabelValues& values);

// Takes measurements; cheap, never blocks, never throws for what is measured.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void Set(const Metric& gauge, const LabelValues& labels, double value) = 0;
  virtual void Add(const Metric& counter, const LabelValues& labels, std::int64_t by = 1) = 0;
  virtual void Observe(const Metric& timing, const LabelValues& labels, Duration took) = 0;
};

// What code that measures holds: passes on to the sinks there are. Without any it
// measures nothing, for tests and programs that are not watched.
class Metrics final : public Sink {
 public:
  Metrics() = default;
  // Either may be null; they outlive this.
  Metrics(Sink* pushed, Sink* scraped) : pushed_(pushed), scraped_(scraped) {}

  void Set(const Metric& gauge, const LabelValues& labels, double value) override;
  void Add(const Metric& counter, const LabelValues& labels, std::int64_t by = 1) override;
  void Observe(const Metric& timing, const LabelValues& labels, Duration took) override;

  // The sink that has to be told gauges again and again (statsd), or null. Who asks
  // for values when he wants them (Prometheus) is told by the answer to his question.
  Sink* pushed() const { return pushed_; }

 private:
  Sink* pushed_ = nullptr;
  Sink* scraped_ = nullptr;
};

// Sets a group of gauges.
using GaugeReport = std::function<void(Sink&)>;

// Tells a group of gauges time and again. One that has left the group is told as 0
// once, so that nobody goes on showing its last value.
class RepeatedGauges {
 public:
  void Tell(Sink& to, const GaugeReport& report);
  // Whether `report` lacks a gauge that was told.
  bool LacksAny(const GaugeReport& report) const;

 private:
  using Keys = std::set<std::pair<const Metric*, LabelValues>>;
  Keys told_;
};

// The reference page of the declarations, in Markdown.
std::string ReferencePage(const std::vector<const Metric*>& metrics);

}  // namespace nodepool::metrics
