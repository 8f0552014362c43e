#include "builder/stats_metrics.h"
#include "launcher/stats/stats_metrics.h"
#include "main/reference/pages.h"
#include "runners/metrics.h"

namespace nodepool::reference {
namespace {

constexpr std::string_view kAboutLaunchers = R"(# Metrics

Made from the declarations in `src/launcher/stats/stats_metrics.h`. [Monitor](../operator/monitor.md) says how to
receive them. In statsd keys, `.` and `:` in requestors, tenants and their resources become `_`. Timings are
milliseconds in statsd and histograms in seconds in Prometheus.

)";

constexpr std::string_view kAboutBuilders = R"(# Metrics of the builder

Made from the declarations in `src/builder/stats_metrics.h`. Sent to statsd when `STATSD_HOST` or `STATSD_PORT` is
set in the environment.

)";

constexpr std::string_view kAboutRunners = R"(# Metrics of the runners

Made from the declarations in `src/runners/metrics.h`. Sent to statsd when `STATSD_HOST` or `STATSD_PORT` is set in
the environment. No label is a repository or a job.

)";

}  // namespace

std::string LauncherMetricsPage() {
  return std::string(kAboutLaunchers) + metrics::ReferencePage(launcher::stats::All());
}

std::string BuilderMetricsPage() {
  return std::string(kAboutBuilders) + metrics::ReferencePage(builder::stats::All());
}

std::string RunnersMetricsPage() {
  return std::string(kAboutRunners) + metrics::ReferencePage(runners::AllMetrics());
}

}  // namespace nodepool::reference
