#include "base/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "base/text.h"

namespace nodepool::metrics {

namespace {

// Calls `text` for the parts between the labels of a key and `label` for each label.
template <class OnText, class OnLabel>
void Walk(std::string_view key, OnText text, OnLabel label) {
  while (!key.empty()) {
    std::size_t open = std::min(key.find('{'), key.size());
    text(key.substr(0, open));
    if (open == key.size()) return;
    std::size_t close = key.find('}', open);
    assert(close != key.npos && "a metric's key has balanced braces");
    std::string_view word = key.substr(open + 1, close - open - 1);
    bool is_normalised = word.ends_with('~');
    if (is_normalised) word.remove_suffix(1);
    label(Label{std::string(word), is_normalised});
    key.remove_prefix(close + 1);
  }
}

// A line of statsd ends at a line break and its key at ":"; "|" begins the kind.
bool BreaksLine(char c) {
  auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte >= 0x7f || c == '|';
}

// Passes gauges on and remembers which ones.
class Remembering final : public Sink {
 public:
  Remembering(Sink* to, std::set<std::pair<const Metric*, LabelValues>>& keys) : to_(to), keys_(keys) {}
  void Set(const Metric& gauge, const LabelValues& labels, double value) override {
    keys_.emplace(&gauge, labels);
    if (to_ != nullptr) to_->Set(gauge, labels, value);
  }
  void Add(const Metric&, const LabelValues&, std::int64_t) override {}
  void Observe(const Metric&, const LabelValues&, Duration) override {}

 private:
  Sink* to_;
  std::set<std::pair<const Metric*, LabelValues>>& keys_;
};

std::string_view NameOf(Kind kind) {
  switch (kind) {
    case Kind::kGauge:
      return "gauge";
    case Kind::kCounter:
      return "counter";
    case Kind::kTiming:
      return "timing";
  }
  return "";
}

}  // namespace

std::vector<Label> LabelsOf(const Metric& metric) {
  std::vector<Label> labels;
  Walk(
      metric.key, [](std::string_view) {}, [&](Label label) { labels.push_back(std::move(label)); });
  return labels;
}

LabelValues Normalised(const Metric& metric, LabelValues values) {
  std::vector<Label> labels = LabelsOf(metric);
  assert(labels.size() == values.size() && "one value for each label");
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!labels[i].is_normalised) continue;
    std::replace_if(
        values[i].begin(), values[i].end(), [](char c) { return c == '.' || c == ':'; }, '_');
  }
  return values;
}

std::string KeyOf(const Metric& metric, const LabelValues& values) {
  std::string key;
  auto value = values.begin();
  auto add_value = [&](const Label&) {
    std::string text = *value++;
    std::replace_if(text.begin(), text.end(), BreaksLine, '_');
    key += text;
  };
  Walk(
      metric.key, [&](std::string_view text) { key += text; }, add_value);
  return key;
}

void Metrics::Set(const Metric& gauge, const LabelValues& labels, double value) {
  for (Sink* sink : {pushed_, scraped_}) {
    if (sink != nullptr) sink->Set(gauge, labels, value);
  }
}

void Metrics::Add(const Metric& counter, const LabelValues& labels, std::int64_t by) {
  for (Sink* sink : {pushed_, scraped_}) {
    if (sink != nullptr) sink->Add(counter, labels, by);
  }
}

void Metrics::Observe(const Metric& timing, const LabelValues& labels, Duration took) {
  for (Sink* sink : {pushed_, scraped_}) {
    if (sink != nullptr) sink->Observe(timing, labels, took);
  }
}

void RepeatedGauges::Report(Sink& to, const GaugeReport& report) {
  Keys now;
  Remembering remembering(&to, now);
  report(remembering);
  for (const auto& [metric, labels] : reported_) {
    if (!now.contains({metric, labels})) to.Set(*metric, labels, 0);
  }
  reported_ = std::move(now);
}

bool RepeatedGauges::LacksAny(const GaugeReport& report) const {
  Keys now;
  Remembering remembering(nullptr, now);
  report(remembering);
  return !std::includes(now.begin(), now.end(), reported_.begin(), reported_.end());
}

std::string ReferencePage(const std::vector<const Metric*>& metrics) {
  std::string page;
  for (const Metric* metric : metrics) {
    std::string key;
    std::vector<std::string> names;
    auto add_label = [&](const Label& label) {
      key += "<" + label.name + ">";
      names.push_back(label.name);
    };
    Walk(
        metric->key, [&](std::string_view text) { key += text; }, add_label);
    std::string labels = names.empty() ? "" : "{" + Join(names, ", ") + "}";
    std::string name = metric->name.empty() ? "" : fmt::format("`{}{}`", metric->name, labels);
    page += fmt::format("| `{}` | {} | {} | {} |\n", key, NameOf(metric->kind), name, metric->help);
  }
  return "| statsd key | kind | Prometheus | what it says |\n|---|---|---|---|\n" + page;
}

namespace {

// Seconds; those of operations.md 10.
constexpr double kBuckets[] = {20, 30, 40, 50, 60, 70, 80, 90, 120, 150, 180, 300, 600, 900};

std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

std::string Escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else {
      if (c == '\\' || c == '"') out += '\\';
      out += c;
    }
  }
  return out;
}

std::string LabelText(const std::vector<Label>& labels, const LabelValues& values, std::string extra = "") {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    parts.push_back(fmt::format("{}=\"{}\"", labels[i].name, Escaped(values[i])));
  }
  if (!extra.empty()) parts.push_back(std::move(extra));
  return parts.empty() ? "" : "{" + Join(parts, ",") + "}";
}

std::string_view TypeOf(Kind kind) {
  switch (kind) {
    case Kind::kGauge:
      return "gauge";
    case Kind::kCounter:
      return "counter";
    case Kind::kTiming:
      return "histogram";
  }
  return "untyped";
}

}  // namespace

Prometheus::Series* Prometheus::Find(const Metric& metric, const LabelValues& labels) {
  if (metric.name.empty()) return nullptr;
  Family& family = families_[metric.name];
  family.metric = &metric;
  LabelValues values = Normalised(metric, labels);
  if (family.series.size() >= kMaxSeries && !family.series.contains(values)) {
    std::vector<Label> names = LabelsOf(metric);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (names[i].is_normalised) values[i] = "other";
    }
  }
  return &family.series[std::move(values)];
}

void Prometheus::Set(const Metric& gauge, const LabelValues& labels, double value) {
  if (Series* series = Find(gauge, labels)) series->value = value;
}

void Prometheus::Add(const Metric& counter, const LabelValues& labels, std::int64_t by) {
  if (Series* series = Find(counter, labels)) series->value += static_cast<double>(by);
}

void Prometheus::Observe(const Metric& timing, const LabelValues& labels, Duration took) {
  Series* series = Find(timing, labels);
  if (series == nullptr) return;
  series->buckets.resize(std::size(kBuckets));
  double seconds = std::chrono::duration<double>(took).count();
  auto bucket = std::lower_bound(std::begin(kBuckets), std::end(kBuckets), seconds) - std::begin(kBuckets);
  if (static_cast<std::size_t>(bucket) < series->buckets.size()) {
    ++series->buckets[static_cast<std::size_t>(bucket)];
  }
  series->value += seconds;
  ++series->count;
}

void Prometheus::Write(const Family& family, std::string& out) {
  const Metric& metric = *family.metric;
  std::vector<Label> labels = LabelsOf(metric);
  out +=
      fmt::format("# HELP {} {}\n# TYPE {} {}\n", metric.name, metric.help, metric.name, TypeOf(metric.kind));
  for (const auto& [values, series] : family.series) {
    if (metric.kind != Kind::kTiming) {
      out += fmt::format("{}{} {}\n", metric.name, LabelText(labels, values), Number(series.value));
      continue;
    }
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < std::size(kBuckets); ++i) {
      below += series.buckets[i];
      std::string limit = fmt::format("le=\"{}\"", Number(kBuckets[i]));
      out += fmt::format("{}_bucket{} {}\n", metric.name, LabelText(labels, values, limit), below);
    }
    out +=
        fmt::format("{}_bucket{} {}\n", metric.name, LabelText(labels, values, "le=\"+Inf\""), series.count);
    out += fmt::format("{}_sum{} {}\n", metric.name, LabelText(labels, values), Number(series.value));
    out += fmt::format("{}_count{} {}\n", metric.name, LabelText(labels, values), series.count);
  }
}

double Prometheus::Sum(const Metric& counter, std::string_view last_label) const {
  double sum = 0;
  auto family = families_.find(counter.name);
  if (family == families_.end()) return sum;
  for (const auto& [labels, series] : family->second.series) {
    if (!labels.empty() && labels.back() == last_label) sum += series.value;
  }
  return sum;
}

std::map<std::string, double> Prometheus::SumsByFirst(const Metric& counter,
                                                      std::string_view last_label_begin) const {
  std::map<std::string, double> sums;
  auto family = families_.find(counter.name);
  if (family == families_.end()) return sums;
  for (const auto& [labels, series] : family->second.series) {
    if (!labels.empty() && labels.back().starts_with(last_label_begin)) sums[labels.front()] += series.value;
  }
  return sums;
}

std::string Prometheus::Text(const GaugeReport& report) const {
  Prometheus now;
  if (report) report(now);
  std::map<std::string_view, const Family*> all;
  for (const auto& [name, family] : families_) all[name] = &family;
  for (const auto& [name, family] : now.families_) all[name] = &family;
  std::string text;
  for (const auto& [name, family] : all) Write(*family, text);
  return text;
}

}  // namespace nodepool::metrics
