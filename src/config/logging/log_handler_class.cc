#include "config/logging/log_handler_class.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace nodepool::config {
namespace {

const std::vector<HandlerClass>& HandlerClasses() {
  using Kind = log::Handler::Kind;
  static const std::vector<HandlerClass> classes = {
      {"StreamHandler", Kind::kStderr, {"stream"}},
      {"FileHandler", Kind::kFile, {"filename", "mode", "encoding", "delay", "errors"}},
      {"WatchedFileHandler", Kind::kFile, {"filename", "mode", "encoding", "delay", "errors"}},
      {"RotatingFileHandler",
       Kind::kFile,
       {"filename", "mode", "maxBytes", "backupCount", "encoding", "delay", "errors"}},
      {"TimedRotatingFileHandler",
       Kind::kFile,
       {"filename", "when", "interval", "backupCount", "encoding", "delay", "utc", "atTime", "errors"}},
      {"SysLogHandler", Kind::kSyslog, {"address", "facility", "socktype"}},
      // Of systemd's package for Python.
      {"JournalHandler", Kind::kJournal, {"level", "address", "SYSLOG_IDENTIFIER"}},
      {"NullHandler", Kind::kNull, {}}};
  return classes;
}

}  // namespace

const HandlerClass& FindHandlerClass(const Value& name) {
  std::string_view last = name.text();
  last.remove_prefix(last.rfind('.') + 1);
  auto found = std::ranges::find(HandlerClasses(), last, &HandlerClass::name);
  if (found != HandlerClasses().end()) return *found;
  std::vector<std::string> names;
  for (const HandlerClass& known : HandlerClasses()) names.emplace_back(known.name);
  throw ErrorAt(name.position(), fmt::format("{} is not supported as a handler; there are {}",
                                             Excerpt(name.text()), Join(names, ", ")));
}

}  // namespace nodepool::config
