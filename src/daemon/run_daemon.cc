#include "daemon/run_daemon.h"

#include <unistd.h>

#include <iostream>

#include "base/log/journal.h"
#include "base/log/log_setup.h"
#include "config/logging/log_file.h"
#include "daemon/memory.h"
#include "daemon/session.h"
#include "daemon/signals.h"
#include "process/background.h"

namespace nodepool::daemon {
namespace {

// Sets up logging by the file given with -l, else to the daemon's output, with the level given with -d.
// Error(kInvalid), which begins with the file.
void SetUpLogging(const Options& options) {
  if (options.logging_path) {
    Expected<log::Setup> setup = config::ReadLogFile(*options.logging_path);
    if (!setup) throw setup.error();
    log::Apply(*setup);
    return;
  }
  if (options.usual_logging && !options.is_debug) return log::Apply(*options.usual_logging);
  if (!options.is_foreground) {
    log::ToFile(options.log_path);
  } else if (!log::IsJournal(STDOUT_FILENO) || !log::ToJournal()) {
    log::ToStdout();
  }
  log::SetLevel("nodepool", options.is_debug ? log::Level::kDebug : log::Level::kInfo);
}

}  // namespace

int RunDaemon(const Program& program, const Options& options) {
  LimitArenas();
  PrepareSignals();
  process::Background background;
  bool has_log = false;
  try {
    if (!options.is_foreground) background.Enter(options.pid_path);
    SetUpLogging(options);
    has_log = true;
    Runtime runtime(program, options, background);
    RunToEnd(runtime.loop, RunParts(program, runtime));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << program.name << ": " << error.what() << "\n";
    if (has_log && background.is_entered())
      log::Logger("nodepool").Error("{} ends: {}", program.name, error.what());
    return 1;
  }
}

}  // namespace nodepool::daemon
