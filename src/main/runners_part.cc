#include "main/runners_part.h"

#include <fmt/format.h>

#include "base/version.h"
#include "daemon/web_address.h"
#include "runners/forgejo/forgejo_service.h"
#include "runners/github/actions_service.h"
#include "runners/github/rest_service.h"

namespace nodepool {
namespace {

template <class Service, class... Records>
std::shared_ptr<runners::ScaleSets> Make(daemon::Runtime& runtime, net::HttpClient& http,
                                         const config::RunnerService& service, const Records&... records) {
  return std::make_shared<Service>(runtime.loop, runtime.random, http, runtime.metrics, service, records...);
}

runners::Runners::Connect ConnectWith(daemon::Runtime& runtime, net::HttpClient& http) {
  return [&runtime, &http](const config::RunnerService& service, const store::RunnerCache& records) {
    if (service.kind == config::RunnerServiceKind::kForgejo)
      return Make<runners::forgejo::ForgejoService>(runtime, http, service);
    if (service.mode == config::RunnerMode::kScaleSet)
      return Make<runners::github::ActionsService>(runtime, http, service);
    return Make<runners::github::RestService>(runtime, http, service, records);
  };
}

}  // namespace

RunnersPart::RunnersPart(daemon::Runtime& runtime, zk::Client& client)
    : runtime_(runtime),
      http_(runtime.loop, runtime.blocking_pool, fmt::format("nodepool-runners/{}", Version())),
      nodes_(runtime.loop),
      runners_(runtime.loop, runtime.random, runtime.metrics, client, nodes_, ConnectWith(runtime, http_),
               daemon::Hostname()) {}

}  // namespace nodepool
