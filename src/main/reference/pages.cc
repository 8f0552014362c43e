#include "main/reference/pages.h"

#include <fmt/format.h>

#include "async/blocking_pool.h"
#include "base/ids.h"
#include "builder/metrics.h"
#include "config/config_loader.h"
#include "config/main_schema.h"
#include "config/schema/schema.h"
#include "config/schema/section.h"
#include "drivers/schemas/known_drivers.h"
#include "launcher/stats/stats_metrics.h"
#include "runners/metrics.h"
#include "web/api/open_api.h"
#include "web/launcher_site.h"
#include "zk/wire/wire_client.h"

namespace nodepool::reference {

namespace {

constexpr std::string_view kAboutSettings = R"(# Configuration reference

Made from the declarations that also check the file; [Configure](../operator/configure.md) says how the parts
play together. Paths: `pools[].name` is the key `name` of each entry of the list `pools`. *reload*: a running
daemon takes the change from the file within a second or two, without a restart. Durations without a
unit are seconds.

)";

constexpr std::string_view kTimeouts = R"(## Time-outs

Every call to the outside ends. What has no setting above:

| what | ends after | then |
| --- | --- | --- |
| connecting to ZooKeeper: TCP, TLS and session together | 5 s | the next server, with pauses that grow from 0.1 s to 5 s |
| a ZooKeeper session without contact | `zookeeper-timeout` | its locks are free; what was done under them is dropped |
| starting a provider | 60 s | tried again with pauses that grow from 1 s to 60 s |
| one deletion of a node | 600 s | tried again with pauses that grow from 5 s to 60 s |
| one sweep for leaked resources, per provider | 600 s | the next minute's sweep |
| one connection attempt of a host key scan | 10 s | another attempt until `boot-timeout` |
| removing a component's entry at a stop | 5 s | it vanishes with the session |
)";

std::string Section(std::string_view title, std::string_view text, const config::Schema& schema) {
  return fmt::format("## {}\n\n{}\n\n{}\n", title, text, config::ToMarkdown(schema));
}

std::string ProviderSection(std::string_view driver, std::string_view text, const config::Schema& schema) {
  return Section(fmt::format("Provider section, driver {}", driver), text,
                 config::WithCommonSettings(schema));
}

}  // namespace

std::string ConfigurationPage(const driver::Registry& drivers) {
  std::string page(kAboutSettings);
  page += Section("nodepool.yaml", "The top level. Entries of `providers` depend on their driver, see below.",
                  config::MainSchema());
  page += Section("The secure file", "Read by the daemons when given with `-s`; its values win.",
                  config::SecureSchema());
  for (const std::string& name : drivers.Names())
    page += ProviderSection(name, "An entry of `providers`.", drivers.Find(name)->ProviderSchema());
  for (std::string_view name : drivers::KnownDriverNames()) {
    const config::Schema* schema = drivers::KnownDriverSchema(name);
    if (drivers.Find(name) != nullptr || !config::IsFullyKnown(*schema)) continue;
    page += ProviderSection(
        name, "An entry of `providers`. The section is checked; the driver is not part of the programs.",
        *schema);
  }
  page += kTimeouts;
  return page;
}

namespace {

constexpr std::string_view kAboutLaunchers = R"(# Metrics

Made from the declarations in `src/launcher/stats/stats_metrics.h`. [Monitor](../operator/monitor.md) says how to
receive them. In statsd keys, `.` and `:` in requestors, tenants and their resources become `_`. Timings are
milliseconds in statsd and histograms in seconds in Prometheus.

)";

constexpr std::string_view kAboutBuilders = R"(# Metrics of the builder

Made from the declarations in `src/builder/metrics.h`. Sent to statsd when `STATSD_HOST` or `STATSD_PORT` is
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

namespace {

constexpr std::string_view kAboutApi = R"(# The JSON API

Made from the declarations in `src/web`. [Monitor](../operator/monitor.md) says what it is good for;
`GET /api/v1/openapi.json` says the same for programs.

Every launcher and `nodepool standalone` answer from memory; ZooKeeper and the clouds are not asked. An answer is
given again for a second. Beside 200 there are 304 (`If-Modified-Since`), 400 for a parameter or value that there
is not, and 503 until the records are read and while ZooKeeper is away; errors are JSON (`message`, `code`, `title`)
for who accepts only `application/json`, else text. Fields may be added, never taken away.

)";

// A launcher as far as its endpoints refer to it: nothing of it runs, since its loop does not.
struct IdleLauncher {
  explicit IdleLauncher(driver::Registry& drivers)
      : launcher(loop, random, pool, no_metrics, client, drivers,
                 std::make_shared<const driver::LoadedConfig>(), {}) {}

  Loop loop;
  SystemRandom random;
  BlockingPool pool{0};
  metrics::Metrics no_metrics;
  metrics::Prometheus prometheus;
  std::string state_fault;
  zk::WireClient client{loop, random, {.servers = {{"localhost"}}}};
  launcher::Launcher launcher;
  web::Access access{loop, web::MatchOnPool(pool)};
};

}  // namespace

std::string ApiPage(driver::Registry& drivers) {
  IdleLauncher idle(drivers);
  return std::string(kAboutApi) +
         web::ApiReference(web::LauncherEndpoints(idle.loop, idle.launcher, idle.prometheus, idle.state_fault,
                                                  idle.access));
}

std::vector<Page> AllPages(driver::Registry& drivers) {
  return {{"reference/configuration.md", ConfigurationPage(drivers)},
          {"reference/metrics.md", LauncherMetricsPage()},
          {"reference/builder-metrics.md", BuilderMetricsPage()},
          {"reference/runners-metrics.md", RunnersMetricsPage()},
          {"reference/api.md", ApiPage(drivers)}};
}

}  // namespace nodepool::reference
