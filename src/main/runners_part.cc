#include <fmt/format.h>

#include <string>

#include "base/version.h"
#include "daemon/web_address.h"
#include "main/parts.h"
#include "net/http/http_client.h"
#include "runners/forgejo/forgejo_service.h"
#include "runners/github/actions_service.h"
#include "runners/github/rest_service.h"
#include "runners/node/runner_nodes.h"
#include "runners/runners.h"

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

// The runners of CI services as a part of a daemon, with its dependencies.
class RunnersPart : public daemon::Part {
 public:
  RunnersPart(daemon::Runtime& runtime, zk::Client& client);

  Task<> Start() override { return runners_.Start(runtime_.config->common.runners); }
  void Reconfigure(std::shared_ptr<const driver::LoadedConfig> config) override {
    runners_.Reconfigure(config->common.runners);
  }
  Task<> Stop() override { return runners_.Stop(); }

 private:
  daemon::Runtime& runtime_;
  net::CurlClient http_;
  runners::SshNodes nodes_;
  runners::Runners runners_;
};

RunnersPart::RunnersPart(daemon::Runtime& runtime, zk::Client& client)
    : runtime_(runtime),
      http_(runtime.loop, runtime.blocking_pool, fmt::format("nodepool-runners/{}", Version())),
      nodes_(runtime.loop),
      runners_(runtime.loop, runtime.random, runtime.metrics, client, nodes_, ConnectWith(runtime, http_),
               daemon::Hostname()) {}

}  // namespace

std::unique_ptr<daemon::Part> MakeRunnersPart(daemon::Runtime& runtime, zk::Client& client) {
  return std::make_unique<RunnersPart>(runtime, client);
}

}  // namespace nodepool
