#pragma once

#include "daemon/options.h"
#include "daemon/runtime.h"
#include "launcher/launcher.h"
#include "net/http/http_server.h"
#include "web/access/access.h"
#include "web/router.h"

namespace nodepool {

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
  // Both outlive it.
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

}  // namespace nodepool
