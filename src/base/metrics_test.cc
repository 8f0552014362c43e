#include "base/metrics.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace nodepool::metrics {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr Metric kNodes{Kind::kGauge, "nodepool.nodes.{state}", "nodepool_nodes", "Nodes by state."};
constexpr Metric kLaunches{Kind::kCounter, "nodepool.launch.requestor.{requestor~}.{result}",
                           "nodepool_launch_by_requestor", "Launches."};
constexpr Metric kTime{Kind::kTiming, "nodepool.launch.{result}", "nodepool_launch_timer", "Launch times."};
constexpr Metric kOldSpelling{Kind::kCounter, "nodepool.leaked.{kind}", "", "Only in statsd."};

class Recorder : public Sink {
 public:
  void Set(const Metric& gauge, const LabelValues& labels, double value) override {
    lines.push_back(fmt::format("{}={}", KeyOf(gauge, labels), value));
  }
  void Add(const Metric& counter, const LabelValues& labels, std::int64_t by) override {
    lines.push_back(fmt::format("{}+{}", KeyOf(counter, labels), by));
  }
  void Observe(const Metric& timing, const LabelValues& labels, Duration) override {
    lines.push_back(KeyOf(timing, labels));
  }
  std::vector<std::string> lines;
};

TEST(MetricsTest, OnlyMarkedLabelsAreNormalised) {  // launcher.27.1
  EXPECT_EQ(KeyOf(kLaunches, Normalised(kLaunches, {"NodePool:min-ready", "error.quota"})),
            "nodepool.launch.requestor.NodePool_min-ready.error.quota");
}

TEST(MetricsTest, NoValueBreaksALine) {
  EXPECT_EQ(KeyOf(kNodes, {"a\nb|c\xc3\xa4"}), "nodepool.nodes.a_b_c__");
}

TEST(MetricsTest, WithoutSinksNothingHappens) {
  Metrics none;
  none.Set(kNodes, {"ready"}, 1);
  none.Add(kLaunches, {"zuul", "ready"});
  none.Observe(kTime, {"ready"}, std::chrono::seconds(1));
  EXPECT_EQ(none.pushed(), nullptr);
}

TEST(MetricsTest, EverySinkGetsTheValues) {
  Recorder pushed, scraped;
  Metrics both(&pushed, &scraped);
  both.Add(kLaunches, {"zuul", "ready"}, 2);
  EXPECT_THAT(pushed.lines, ElementsAre("nodepool.launch.requestor.zuul.ready+2"));
  EXPECT_EQ(scraped.lines, pushed.lines);
}

TEST(MetricsTest, AVanishedGaugeIsReportedAsZeroOnce) {  // launcher.27.3
  Recorder sink;
  RepeatedGauges gauges;
  gauges.Report(sink, [](Sink& to) {
    to.Set(kNodes, {"ready"}, 3);
    to.Set(kNodes, {"used"}, 4);
  });
  auto less = [](Sink& to) { to.Set(kNodes, {"ready"}, 3); };
  EXPECT_TRUE(gauges.LacksAny(less));
  sink.lines.clear();
  gauges.Report(sink, less);
  EXPECT_THAT(sink.lines, ElementsAre("nodepool.nodes.ready=3", "nodepool.nodes.used=0"));
  EXPECT_FALSE(gauges.LacksAny(less));
  sink.lines.clear();
  gauges.Report(sink, less);
  EXPECT_THAT(sink.lines, ElementsAre("nodepool.nodes.ready=3"));
}

TEST(PrometheusTest, GaugesAndCounters) {
  Prometheus prometheus;
  prometheus.Add(kLaunches, {"a\"b\\c\n", "ready"}, 2);
  prometheus.Add(kLaunches, {"a\"b\\c\n", "ready"});
  auto gauges = [](Sink& to) {
    to.Set(kNodes, {"ready"}, std::numeric_limits<double>::infinity());
    to.Set(kNodes, {"used"}, -1);
  };
  EXPECT_EQ(prometheus.Text(gauges),
            "# HELP nodepool_launch_by_requestor Launches.\n"
            "# TYPE nodepool_launch_by_requestor counter\n"
            "nodepool_launch_by_requestor{requestor=\"a\\\"b\\\\c\\n\",result=\"ready\"} 3\n"
            "# HELP nodepool_nodes Nodes by state.\n"
            "# TYPE nodepool_nodes gauge\n"
            "nodepool_nodes{state=\"ready\"} +Inf\n"
            "nodepool_nodes{state=\"used\"} -1\n");
  EXPECT_THAT(prometheus.Text(), Not(HasSubstr("nodepool_nodes"))) << "gauges are read again each time";
}

TEST(PrometheusTest, TimingsAreHistogramsInSeconds) {  // operations.md 10
  Prometheus prometheus;
  for (int seconds : {20, 45, 1000}) prometheus.Observe(kTime, {"ready"}, std::chrono::seconds(seconds));
  std::string text = prometheus.Text();
  EXPECT_THAT(text, HasSubstr("# TYPE nodepool_launch_timer histogram\n"));
  EXPECT_THAT(text, HasSubstr("nodepool_launch_timer_bucket{result=\"ready\",le=\"20\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("nodepool_launch_timer_bucket{result=\"ready\",le=\"40\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("nodepool_launch_timer_bucket{result=\"ready\",le=\"900\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("nodepool_launch_timer_bucket{result=\"ready\",le=\"+Inf\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("nodepool_launch_timer_sum{result=\"ready\"} 1065\n"));
  EXPECT_THAT(text, HasSubstr("nodepool_launch_timer_count{result=\"ready\"} 3\n"));
}

TEST(PrometheusTest, RequestorsBeyondTheLimitAreCountedTogether) {
  Prometheus prometheus;
  for (std::size_t i = 0; i < Prometheus::kMaxSeries + 50; ++i) {
    prometheus.Add(kLaunches, {fmt::format("requestor-{}", i), "ready"});
  }
  EXPECT_THAT(prometheus.Text(), HasSubstr("{requestor=\"other\",result=\"ready\"} 50\n"));
}

TEST(PrometheusTest, AMetricWithoutANameIsNotShown) {
  Prometheus prometheus;
  prometheus.Add(kOldSpelling, {"INSTANCEs"});
  EXPECT_THAT(prometheus.Text(), IsEmpty());
}

TEST(MetricsTest, ReferencePage) {
  EXPECT_EQ(ReferencePage({&kNodes, &kOldSpelling}),
            "| statsd key | kind | Prometheus | what it says |\n"
            "|---|---|---|---|\n"
            "| `nodepool.nodes.<state>` | gauge | `nodepool_nodes{state}` | Nodes by state. |\n"
            "| `nodepool.leaked.<kind>` | counter |  | Only in statsd. |\n");
}

}  // namespace

}  // namespace nodepool::metrics
