#include "daemon/builder_options.h"

#include <CLI/CLI.hpp>

namespace nodepool::daemon {

void AddBuilderOptions(CLI::App& app, BuilderOptions& options) {
  constexpr int kMaxWorkers = 1000;
  app.add_option("--build-workers", options.build_workers, "builds at a time")
      ->check(CLI::Range(0, kMaxWorkers))
      ->capture_default_str();
  app.add_option("--upload-workers", options.upload_workers, "uploads at a time")
      ->check(CLI::Range(0, kMaxWorkers))
      ->capture_default_str();
  app.add_flag(
      "--finish-builds", options.finishes_builds,
      "at SIGINT or SIGUSR1, wait for the builds and uploads that run; a second signal ends at once");
}

std::shared_ptr<CLI::App> BuilderApp(BuilderOptions& options) {
  return DaemonApp("nodepool-builder", "Builds disk images and uploads them to the providers that use them",
                   options, [&](CLI::App& app) { AddBuilderOptions(app, options); });
}

}  // namespace nodepool::daemon
