#include "main/builder_setup.h"

#include <filesystem>

#include "builder/builder_id.h"
#include "cli/host_name.h"
#include "main/daemon.h"
#include "process/command.h"

namespace nodepool {

builder::Builder::Options BuilderSetup(const cli::BuilderOptions& options, const std::string& images_dir,
                                       Random& random) {
  builder::Builder::Options result;
  result.identity.hostname = cli::WholeHostname();
  result.identity.fqdn = cli::FullyQualifiedHostname();
  result.identity.builder_id = builder::ReadBuilderId(images_dir, random);
  std::error_code error;
  result.identity.helpers = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  result.environment = process::OwnEnvironment();
  result.workers = {options.build_workers, options.upload_workers};
  result.finishes_work = options.finishes_builds;
  OverrideCleanupInterval(options, result.intervals.cleanup);
  return result;
}

}  // namespace nodepool
