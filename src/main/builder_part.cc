#include <filesystem>
#include <string>

#include "builder/builder.h"
#include "builder/files/local_files.h"
#include "daemon/web_address.h"
#include "main/parts.h"
#include "process/command.h"

namespace nodepool {
namespace {

builder::Builder::Options BuilderSetup(const daemon::BuilderOptions& options, const std::string& images_dir,
                                       Random& random) {
  builder::Builder::Options setup;
  setup.identity.hostname = daemon::WholeHostname();
  setup.identity.fqdn = daemon::FullyQualifiedHostname();
  setup.identity.builder_id = builder::ReadBuilderId(images_dir, random);
  std::error_code error;
  setup.identity.helpers = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  setup.environment = process::OwnEnvironment();
  setup.workers = {options.build_workers, options.upload_workers};
  setup.finishes_work = options.finishes_builds;
  setup.intervals.cleanup = options.CleanupIntervalOr(setup.intervals.cleanup);
  return setup;
}

// The builder as a part of a daemon, with its dependencies.
class BuilderPart : public daemon::Part {
 public:
  BuilderPart(daemon::Runtime& runtime, zk::Client& client, const daemon::BuilderOptions& options,
              const std::string& images_dir);

  Task<> Start() override { return builder_.Start(); }
  void Reconfigure(std::shared_ptr<const driver::LoadedConfig> config) override {
    builder_.Reconfigure(std::move(config));
  }
  void ConfigurationRejected(const std::optional<RejectedConfiguration>& rejected) override {
    builder_.ConfigurationRejected(rejected);
  }
  Task<> Stop() override { return builder_.Stop(); }

 private:
  process::SystemRunner runner_;
  builder::DirectoryFiles files_;
  builder::Builder builder_;
};

BuilderPart::BuilderPart(daemon::Runtime& runtime, zk::Client& client, const daemon::BuilderOptions& options,
                         const std::string& images_dir)
    : runner_(runtime.loop),
      files_(runtime.blocking_pool),
      builder_(runtime.loop, runtime.random, runtime.blocking_pool, runtime.metrics, client, runtime.drivers,
               runner_, files_, runtime.config, BuilderSetup(options, images_dir, runtime.random)) {}

}  // namespace

std::unique_ptr<daemon::Part> MakeBuilderPart(daemon::Runtime& runtime, zk::Client& client,
                                              const daemon::BuilderOptions& options,
                                              const std::string& images_dir) {
  return std::make_unique<BuilderPart>(runtime, client, options, images_dir);
}

}  // namespace nodepool
