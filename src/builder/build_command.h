#pragma once

#include <string>
#include <vector>

#include "config/config.h"
#include "process/command.h"
#include "store/records.h"

namespace nodepool::builder {

// The programs that make a build, to be run one after the other (builder.md 8).
struct BuildPlan {
  std::vector<process::Command> commands;  // without log and time-out
  // Formats whose checksum files nobody has written when the commands have ended.
  std::vector<std::string> without_checksums;
};

struct BuildContext {
  process::Environment environment;  // the daemon's
  std::string helpers;               // what %p in dib-cmd stands for (D-43)
};

// Where the files of a build begin: <images-dir>/<image>-<build id>.
std::string LocalBase(const std::string& images_dir, const store::BuildKey& build);

// The image of one run can be converted to qcow2 or to other formats of qemu-img, since
// the options for qcow2 would be refused for those; they are converted afterwards (D-46).
// Throws Error(kInvalid) when dib-cmd cannot be read.
BuildPlan PlanBuild(const config::Config& config, const config::DiskImage& image,
                    const store::BuildKey& build, const BuildContext& context);

}  // namespace nodepool::builder
