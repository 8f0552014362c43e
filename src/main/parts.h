#pragma once

#include <memory>
#include <string>

#include "daemon/options.h"
#include "daemon/program.h"
#include "daemon/runtime.h"
#include "zk/client.h"

namespace nodepool {

// What daemons are made of. Runtime and client outlive the parts.

// What a launcher does itself, and what it leaves to other launchers (operations.md 13.1).
struct LauncherRole {
  bool launches = true;
  bool deletes = true;
  bool has_web = true;
};
struct LauncherParts {
  std::unique_ptr<daemon::Part> launcher;
  // Serves before the launcher starts and until it has stopped; destroy it first. Null: the role has none.
  std::unique_ptr<daemon::Part> web;
};
LauncherParts MakeLauncherParts(daemon::Runtime& runtime, zk::Client& client, const daemon::Options& options,
                                LauncherRole role);

// Creates the builder's id in `images_dir` if there is none; Error(kInvalid) if that fails.
std::unique_ptr<daemon::Part> MakeBuilderPart(daemon::Runtime& runtime, zk::Client& client,
                                              const daemon::BuilderOptions& options,
                                              const std::string& images_dir);

// The runners of CI services.
std::unique_ptr<daemon::Part> MakeRunnersPart(daemon::Runtime& runtime, zk::Client& client);

}  // namespace nodepool
