#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log/log_format.h"
#include "base/log/logging.h"

// Where messages go, and how they look (configuration.md 14).
namespace nodepool::log {

// A file and when it gives way to the next one.
struct LogFile {
  std::string path;
  // Opened anew when somebody has moved or removed it.
  bool is_watched = false;
  // By size: before it would exceed so many bytes; 0: never.
  std::int64_t max_bytes = 0;
  // By time: every `interval` seconds, or at midnight of every `interval` days, or of the
  // days of the week `weekday` (0 = Monday).
  enum class Turn { kNever, kSeconds, kMidnight, kWeekday };
  Turn turn = Turn::kNever;
  std::int64_t interval = 1;
  int weekday = 0;
  std::string suffix;  // strftime, of the beginning of its time
  bool is_utc = false;
  // Former ones that stay, named PATH.1, PATH.2 ... or PATH.SUFFIX; 0: by size none turns,
  // by time all stay.
  int backups = 0;
};

struct Syslog {
  std::string address = "/dev/log";  // a socket of this host, or host name or IP address
  int port = 0;                      // of UDP; 0: `address` is a path
  int facility = 1;                  // user
  bool is_terminated = true;         // a zero byte follows each message
};

struct Journal {
  std::string address = "/run/systemd/journal/socket";
  std::string identifier;  // SYSLOG_IDENTIFIER; empty: the program's name
};

struct Handler {
  enum class Kind { kStdout, kStderr, kFile, kSyslog, kJournal, kNull };
  Kind kind = Kind::kStderr;
  LogFile file;
  Syslog syslog;
  Journal journal;
  Level level = Level::kDebug;  // lower ones are left out
  LineFormat format;
};

struct LoggerSetup {
  std::optional<Level> level;         // nothing: that of the logger above
  std::vector<std::string> handlers;  // names
  bool is_passed_on = true;           // also to the handlers of the loggers above
};

struct Setup {
  std::map<std::string, Handler> handlers;
  std::map<std::string, LoggerSetup> loggers;  // "": the root, which must be there
};

// Puts it in force for all loggers, instead of what was. Error(kInvalid): a file cannot be
// opened; nothing is changed.
void Apply(const Setup& setup);

// Opens files anew, for who has moved them away.
void ReopenFiles();

}  // namespace nodepool::log
