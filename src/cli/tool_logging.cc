#include "cli/tool_logging.h"

#include <unistd.h>

#include "base/log/log_setup.h"
#include "config/logging/log_file.h"
#include "daemon/home.h"

namespace nodepool::cli {
namespace {

// The tool's own messages have no time and no logger name; lines of the libraries look as in a log.
log::Setup UsualLogging() {
  log::Handler words;
  words.format = *log::LineFormat::Parse("nodepool: %(message)s", "", true);
  log::Setup setup;
  setup.handlers = {{"log", log::Handler()}, {"words", words}};
  setup.loggers[""] = {log::Level::kInfo, {"log"}};
  setup.loggers["nodepool.cmd.nodepoolcmd"] = {std::nullopt, {"words"}, false};
  setup.loggers["nodepool.zk"] = {log::Level::kWarning, {}};
  setup.loggers["nodepool.ComponentRegistry"] = {log::Level::kWarning, {}};
  return setup;
}

// What config-validate finds, on a terminal. Programs get lines of a log.
log::Setup PlainFindings(log::Setup setup) {
  log::Handler plain;
  plain.format = log::LineFormat::ForPeople();
  setup.handlers["findings"] = plain;
  setup.loggers["nodepool.cmd.config_validator"] = {std::nullopt, {"findings"}, false};
  return setup;
}

log::Setup AllTo(log::Handler::Kind kind) {
  log::Handler handler;
  handler.kind = kind;
  log::Setup setup;
  setup.handlers = {{"log", handler}};
  setup.loggers[""] = {log::Level::kDebug, {"log"}};
  return setup;
}

}  // namespace

void SetUpLogging(const Invocation& invocation) {
  bool is_for_people = invocation.validation && ::isatty(STDERR_FILENO) == 1;
  log::Apply(is_for_people ? PlainFindings(UsualLogging()) : UsualLogging());
  if (invocation.is_silent) return log::Apply(AllTo(log::Handler::Kind::kNull));
  if (invocation.is_debug) return log::Apply(AllTo(log::Handler::Kind::kStderr));
  if (!invocation.logging_path) return;
  Expected<log::Setup> setup = config::ReadLogFile(daemon::ExpandHome(*invocation.logging_path));
  if (!setup) throw setup.error();
  log::Apply(*setup);
}

}  // namespace nodepool::cli
