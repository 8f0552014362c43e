#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

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

}  // namespace nodepool::log
