#include <sys/resource.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/version.h"
#include "daemon/web_address.h"
#include "launcher/launcher.h"
#include "main/parts.h"
#include "net/http/http_client.h"
#include "net/http/http_server.h"
#include "web/access/access.h"
#include "web/launcher_site.h"
#include "web/page/page.h"
#include "web/router.h"

namespace nodepool {
namespace {

launcher::Launcher::Options LauncherSetup(const daemon::Options& options, launcher::Duties duties) {
  launcher::Launcher::Options setup{daemon::Hostname(), daemon::FullyQualifiedHostname(), {}, duties};
  setup.intervals.cleanup = options.CleanupIntervalOr(setup.intervals.cleanup);
  return setup;
}

std::vector<web::Endpoint> EndpointsOf(daemon::Runtime& runtime, launcher::Launcher& launcher,
                                       web::Access& access) {
  std::vector<web::Endpoint> endpoints =
      web::LauncherEndpoints(runtime.loop, launcher, runtime.prometheus, runtime.state_fault, access);
  std::ranges::move(web::PageEndpoints(), std::back_inserter(endpoints));
  return endpoints;
}

// Streams take at most three eighths of the files that the process may open; other connections, clouds and
// ZooKeeper need theirs.
net::HttpLimits WebLimits() {
  net::HttpLimits limits;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return limits;
  limits.streams = std::min<std::size_t>(limits.streams, files.rlim_cur / 4);
  limits.proven_streams = std::min<std::size_t>(limits.proven_streams, files.rlim_cur / 8);
  return limits;
}

constexpr Duration kPeerTimeout = std::chrono::seconds(2);

std::optional<CertificateFiles> CertificateOf(const config::WebAppSettings& settings) {
  if (!settings.tls) return std::nullopt;
  return CertificateFiles{settings.tls->cert, settings.tls->key};
}

// The launcher as a part of a daemon.
class LauncherPart : public daemon::Part {
 public:
  LauncherPart(daemon::Runtime& runtime, zk::Client& client, const daemon::Options& options,
               launcher::Duties duties);

  launcher::Launcher& launcher() { return launcher_; }

  Task<> Start() override { return launcher_.Start(); }
  void Reconfigure(std::shared_ptr<const driver::LoadedConfig> config) override {
    launcher_.Reconfigure(std::move(config));
  }
  void ConfigurationRejected(const std::optional<RejectedConfiguration>& rejected) override {
    launcher_.ConfigurationRejected(rejected);
  }
  Task<> Stop() override { return launcher_.Stop(); }

 private:
  launcher::Launcher launcher_;
};

// The launcher's web server, which serves before the launcher starts and until it has stopped.
class WebPart : public daemon::Part {
 public:
  WebPart(daemon::Runtime& runtime, launcher::Launcher& launcher);

  void Reconfigure(std::shared_ptr<const driver::LoadedConfig> config) override { Configure(*config); }
  void Prepare() override { server_.Listen(settings_.listen_address, settings_.port); }
  Task<> Stop() override { return server_.Stop(); }

 private:
  void Configure(const driver::LoadedConfig& config);
  void Announce(daemon::Runtime& runtime, launcher::Launcher& launcher);

  config::WebAppSettings settings_;
  web::Access access_;
  web::Router router_;
  net::HttpServer server_;
};

LauncherPart::LauncherPart(daemon::Runtime& runtime, zk::Client& client, const daemon::Options& options,
                           launcher::Duties duties)
    : launcher_(runtime.loop, runtime.random, runtime.blocking_pool, runtime.metrics, client, runtime.drivers,
                runtime.config, LauncherSetup(options, duties)) {}

WebPart::WebPart(daemon::Runtime& runtime, launcher::Launcher& launcher)
    : settings_(runtime.config->common.webapp),
      access_(runtime.loop, web::MatchOnPool(runtime.blocking_pool)),
      router_(EndpointsOf(runtime, launcher, access_)),
      server_(runtime.loop, web::GuardReading(access_, router_), WebLimits(), CertificateOf(settings_)) {
  Configure(*runtime.config);
  Announce(runtime, launcher);
}

void WebPart::Announce(daemon::Runtime& runtime, launcher::Launcher& launcher) {
  auto http = std::make_shared<net::CurlClient>(runtime.loop, runtime.blocking_pool,
                                                fmt::format("nodepool-launcher/{}", Version()));
  auto ask = [http, web = settings_](std::string hostname, WebServer server, std::string target) {
    std::string address = daemon::WebAddress(web, server, hostname, daemon::Hostname());
    return daemon::AskLauncher(http, {std::move(address), std::move(target), daemon::CaPath(web),
                                      kPeerTimeout, launcher::kMaxPeerAnswer});
  };
  launcher.HasWebServer(daemon::ConfiguredServer(settings_), ask);
}

// Machines may outlive their provider, so this host is not trusted again.
void WebPart::Configure(const driver::LoadedConfig& config) {
  access_.Configure(config.common);
  if (driver::ProviderThatReachesThisHost(config)) access_.DistrustThisHost();
}

}  // namespace

LauncherParts MakeLauncherParts(daemon::Runtime& runtime, zk::Client& client, const daemon::Options& options,
                                LauncherRole role) {
  launcher::Duties duties{.launches = role.launches, .deletes = role.deletes};
  auto launcher = std::make_unique<LauncherPart>(runtime, client, options, duties);
  auto web = role.has_web ? std::make_unique<WebPart>(runtime, launcher->launcher()) : nullptr;
  return {std::move(launcher), std::move(web)};
}

}  // namespace nodepool
