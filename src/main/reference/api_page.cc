#include "async/blocking_pool.h"
#include "base/random.h"
#include "main/reference/pages.h"
#include "web/api/open_api.h"
#include "web/launcher_site.h"
#include "zk/wire/wire_client.h"

namespace nodepool::reference {
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
