#pragma once

#include <set>
#include <string>
#include <vector>

#include "config/config.h"
#include "process/command.h"
#include "store/records.h"

namespace nodepool::builder {

// The commands that make a build, to be run in order (builder.md 8).
struct BuildPlan {
  std::vector<process::Command> commands;  // without log and time-out
  // Formats without checksum files after the commands have ended.
  std::vector<std::string> without_checksums;
};

struct BuildContext {
  process::Environment environment;  // the daemon's
  std::string helpers;               // replaces %p in dib-cmd (D-43)
};

// In which directories disk-image-create makes its temporary ones (builder.md 20.2), with the daemon's
// environment and that of each image.
std::set<std::string> TemporaryFolders(const config::Config& config, const process::Environment& environment);

// The common beginning of a build's files: <images-dir>/<image>-<build id>.
std::string LocalBase(const std::string& images_dir, const store::BuildKey& build);

// One run can make either qcow2 or other formats of qemu-img, since these do not accept the options for
// qcow2; the others are converted afterwards (D-46). Throws Error(kInvalid) if dib-cmd cannot be parsed.
BuildPlan PlanBuild(const config::Config& config, const config::DiskImage& image,
                    const store::BuildKey& build, const BuildContext& context);

}  // namespace nodepool::builder
