#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/log/logging.h"

namespace nodepool::log {

struct Record;

using LogTime = std::chrono::system_clock::time_point;

// How a record becomes text. Formats are written as Python's logging package has them,
// such as "%(asctime)s %(levelname)-8s %(name)s: %(message)s" (configuration.md 14).
class LineFormat {
 public:
  // The daemons' format: the first line of a record begins with time, level and logger; the second
  // and later ones are indented (operations.md 8.1).
  LineFormat();

  // `date_format` is strftime's; empty: "2026-03-01 12:34:56,789". With `is_multi_line`
  // every line of a record gets the whole prefix. Error(kInvalid): a field is unknown.
  static Expected<LineFormat> Parse(std::string_view format, std::string date_format, bool is_multi_line);
  // For a terminal: the message alone; of warnings and errors it begins with that word, as in "error: …".
  static LineFormat ForPeople();
  // One JSON object per record: time, level, logger, event, request, node, message.
  static LineFormat Json();

  // Without a line break at the end.
  std::string Format(const Record& record, LogTime time) const;

 private:
  enum class Field {
    kText,
    kTime,
    kLevel,
    kLevelNumber,
    kSeverity,
    kName,
    kMessage,
    kCreated,
    kMilliseconds,
    kProcess,
    kProcessName,
    kThread,
    kThreadName,
    kNothing
  };
  struct Piece {
    Field field;
    std::string text;  // of kText
    bool is_left = false;
    bool has_zeros = false;
    int width = 0;
    int precision = -1;
  };

  struct Empty {};
  explicit LineFormat(Empty) {}

  void ParseField(std::string_view& rest, std::string& fault);
  std::string Value(const Piece& piece, const Record& record, LogTime time, std::string_view message) const;
  std::string Line(const Record& record, LogTime time, std::string_view message) const;
  std::string TimeText(LogTime time) const;

  std::vector<Piece> pieces_;
  std::string date_format_;
  bool is_multi_line_ = true;
  bool is_json_ = false;
};

// Where log records are written, and in which format (configuration.md 14).

// A log file and when it is rotated.
struct LogFile {
  std::string path;
  // Reopened when another program has moved or removed it.
  bool is_watched = false;
  // Rotate by size: before it would exceed so many bytes; 0: never.
  std::int64_t max_bytes = 0;
  // Rotate by time: every `interval` seconds, or at midnight of every `interval` days, or of the
  // days of the week `weekday` (0 = Monday).
  enum class Turn { kNever, kSeconds, kMidnight, kWeekday };
  Turn turn = Turn::kNever;
  std::int64_t interval = 1;
  int weekday = 0;
  std::string suffix;  // strftime, of the beginning of its time
  bool is_utc = false;
  // How many rotated files are retained, named PATH.1, PATH.2 ... or PATH.SUFFIX; 0: no rotation by
  // size; by time all are retained.
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

// Replaces the setup of all loggers. Error(kInvalid): a file cannot be opened; nothing is changed.
void Apply(const Setup& setup);

// Reopens log files, after another program has moved them.
void ReopenFiles();

}  // namespace nodepool::log
