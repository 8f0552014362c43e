#include "base/metrics/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "base/text.h"

namespace nodepool::metrics {
namespace {

// Calls `text` for what stands between the labels of a key and `label` for each label.
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

// Passes gauges on and remembers which.
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

void RepeatedGauges::Tell(Sink& to, const GaugeReport& report) {
  Keys now;
  Remembering remembering(&to, now);
  report(remembering);
  for (const auto& [metric, labels] : told_) {
    if (!now.contains({metric, labels})) to.Set(*metric, labels, 0);
  }
  told_ = std::move(now);
}

bool RepeatedGauges::LacksAny(const GaugeReport& report) const {
  Keys now;
  Remembering remembering(nullptr, now);
  report(remembering);
  return !std::includes(now.begin(), now.end(), told_.begin(), told_.end());
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

}  // namespace nodepool::metrics
