#pragma once

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace nodepool::log {

// How serious a line is, as in Python's logging.
enum class Level { kDebug, kInfo, kWarning, kError, kCritical };

std::string_view ToString(Level level);  // "DEBUG" ... as in the line format

// The ids that a message concerns. Printed in front of the text in this order, each only when
// known: "[e: EVENT] [node_request: REQUEST] [node: NODE] " (operations.md 8.2).
struct Ids {
  std::string event;
  std::string request;
  std::string node;
};
inline Ids OfRequest(const RequestId& id) { return {.event = "", .request = id.value, .node = ""}; }
inline Ids OfNode(const NodeId& id) { return {.event = "", .request = "", .node = id.value}; }

struct Record {
  Level level;
  std::string logger;
  Ids ids;
  std::string text;  // without the annotations; may have several lines
};

// The annotations and the text, as in a log line.
std::string Annotated(const Record& record);

// A named source of messages. Names are hierarchical by dots; levels are set by
// name prefix. Copies are cheap. Messages are sentences an operator can act on
// and never contain secrets.
class Logger {
 public:
  explicit Logger(std::string_view name);

  // The same logger, whose records carry `ids`.
  Logger About(Ids ids) const;

  bool Enabled(Level level) const;
  const std::string& name() const;
  const Ids& ids() const { return ids_; }

  void Write(Level level, std::string text) const;

  template <class... Args>
  void Debug(fmt::format_string<Args...> format, Args&&... args) const {
    if (Enabled(Level::kDebug)) Write(Level::kDebug, fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void Info(fmt::format_string<Args...> format, Args&&... args) const {
    if (Enabled(Level::kInfo)) Write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void Warning(fmt::format_string<Args...> format, Args&&... args) const {
    if (Enabled(Level::kWarning)) Write(Level::kWarning, fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void Error(fmt::format_string<Args...> format, Args&&... args) const {
    if (Enabled(Level::kError)) Write(Level::kError, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  struct Source;
  friend void SetLevel(std::string_view prefix, Level level);
  friend struct Registry;

  std::shared_ptr<Source> source_;
  Ids ids_;
};

// Messages below `level` from loggers named `prefix` or "<prefix>.…" are dropped;
// the longest matching prefix decides; "" is the root. Default: root INFO.
void SetLevel(std::string_view prefix, Level level);

// Where records are written; replaces the former destination. Default: standard error.
void ToStdout();
void ToStderr();
void ToFile(const std::string& path);  // throws Error when it cannot be opened

// Stores the records written while it lives, for tests; they are also written to the normal
// destination.
class Capture {
 public:
  Capture();
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  const std::vector<Record>& records() const { return records_; }
  // Number of records whose annotated text contains `text`.
  int Count(std::string_view text) const;

 private:
  friend struct Registry;
  std::vector<Record> records_;
};

}  // namespace nodepool::log
