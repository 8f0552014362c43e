#include "base/log/log_setup.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <ctime>
#include <map>

#include "base/log/logging.h"
#include "base/text.h"

namespace nodepool::log {

namespace {

constexpr std::string_view kDefaultFormat = "%(asctime)s %(levelname)s %(name)s: %(message)s";
constexpr int kWidest = 1000;

std::int64_t Milliseconds(LogTime time) {
  return std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

std::string LocalTime(LogTime time, const std::string& format) {
  std::time_t seconds = std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(time));
  std::tm parts{};
  localtime_r(&seconds, &parts);
  char text[256];
  std::size_t size = std::strftime(text, sizeof(text), format.c_str(), &parts);
  return std::string(text, size);
}

int NumberOf(Level level) { return (static_cast<int>(level) + 1) * 10; }

std::string_view SeverityOf(Level level) {
  if (level == Level::kWarning) return "warning: ";
  return level < Level::kWarning ? "" : "error: ";
}

// UTF-8 or not, the result has to be valid JSON.
std::string Printable(std::string_view text) {
  return IsValidUtf8(text) ? std::string(text) : Excerpt(text, text.size() * 4);
}

std::string JsonLine(const Record& record, LogTime time) {
  boost::json::object object;
  object["time"] = static_cast<double>(Milliseconds(time)) / 1000;
  object["level"] = ToString(record.level);
  object["logger"] = record.logger;
  if (!record.ids.event.empty()) object["event"] = Printable(record.ids.event);
  if (!record.ids.request.empty()) object["node_request"] = Printable(record.ids.request);
  if (!record.ids.node.empty()) object["node"] = Printable(record.ids.node);
  object["message"] = Printable(record.text);
  return boost::json::serialize(object);
}

int TakeNumber(std::string_view& text) {
  int number = 0;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    number = std::min(number * 10 + (text.front() - '0'), kWidest);
    text.remove_prefix(1);
  }
  return number;
}

}  // namespace

LineFormat::LineFormat() : LineFormat(*Parse(kDefaultFormat, "", true)) {}

Expected<LineFormat> LineFormat::Parse(std::string_view format, std::string date_format, bool is_multi_line) {
  LineFormat result{Empty{}};
  result.date_format_ = std::move(date_format);
  result.is_multi_line_ = is_multi_line;
  std::string_view rest = format;
  std::string text;
  auto end_text = [&] {
    if (!text.empty()) result.pieces_.push_back({Field::kText, std::exchange(text, "")});
  };
  while (!rest.empty()) {
    if (rest.front() != '%') {
      text += rest.front();
      rest.remove_prefix(1);
    } else if (rest.starts_with("%%")) {
      text += '%';
      rest.remove_prefix(2);
    } else {
      end_text();
      std::string fault;
      result.ParseField(rest, fault);
      if (!fault.empty()) return Unexpected(Verdict::kInvalid, fault);
    }
  }
  end_text();
  return result;
}

// %(name)[-][0][width][.precision]s
void LineFormat::ParseField(std::string_view& rest, std::string& fault) {
  static const std::map<std::string_view, Field> fields = {{"asctime", Field::kTime},
                                                           {"levelname", Field::kLevel},
                                                           {"levelno", Field::kLevelNumber},
                                                           {"name", Field::kName},
                                                           {"message", Field::kMessage},
                                                           {"created", Field::kCreated},
                                                           {"msecs", Field::kMilliseconds},
                                                           {"process", Field::kProcess},
                                                           {"processName", Field::kProcessName},
                                                           {"thread", Field::kThread},
                                                           {"threadName", Field::kThreadName},
                                                           // Places in the source, which records do not have.
                                                           {"module", Field::kNothing},
                                                           {"lineno", Field::kNothing},
                                                           {"filename", Field::kNothing},
                                                           {"funcName", Field::kNothing},
                                                           {"pathname", Field::kNothing},
                                                           {"relativeCreated", Field::kNothing},
                                                           {"taskName", Field::kNothing}};
  std::string_view whole = rest.substr(0, 40);
  std::size_t close = rest.find(')');
  if (!rest.starts_with("%(") || close == std::string_view::npos) {
    fault = fmt::format("\"{}\": expected %(name)s", Excerpt(whole));
    return;
  }
  auto known = fields.find(rest.substr(2, close - 2));
  if (known == fields.end()) {
    fault = fmt::format("\"{}\" is not a field of a log line", Excerpt(rest.substr(2, close - 2)));
    return;
  }
  Piece piece{known->second, ""};
  rest.remove_prefix(close + 1);
  for (; !rest.empty() && (rest.front() == '-' || rest.front() == '0'); rest.remove_prefix(1)) {
    (rest.front() == '-' ? piece.is_left : piece.has_zeros) = true;
  }
  piece.width = TakeNumber(rest);
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    piece.precision = TakeNumber(rest);
  }
  if (rest.empty() || std::string_view("sdfxir").find(rest.front()) == std::string_view::npos) {
    fault = fmt::format("\"{}\": expected %(name)s, %(name)d or %(name)f", Excerpt(whole));
    return;
  }
  rest.remove_prefix(1);
  pieces_.push_back(std::move(piece));
}

LineFormat LineFormat::ForPeople() {
  LineFormat format{Empty{}};
  format.pieces_ = {{Field::kSeverity, ""}, {Field::kMessage, ""}};
  format.is_multi_line_ = false;
  return format;
}

LineFormat LineFormat::Json() {
  LineFormat format{Empty{}};
  format.is_json_ = true;
  return format;
}

std::string LineFormat::TimeText(LogTime time) const {
  if (!date_format_.empty()) return LocalTime(time, date_format_);
  return fmt::format("{},{:03}", LocalTime(time, "%Y-%m-%d %H:%M:%S"), Milliseconds(time) % 1000);
}

std::string LineFormat::Value(const Piece& piece, const Record& record, LogTime time,
                              std::string_view message) const {
  switch (piece.field) {
    case Field::kText:
      return piece.text;
    case Field::kTime:
      return TimeText(time);
    case Field::kLevel:
      return std::string(ToString(record.level));
    case Field::kLevelNumber:
      return std::to_string(NumberOf(record.level));
    case Field::kSeverity:
      return std::string(SeverityOf(record.level));
    case Field::kName:
      return record.logger;
    case Field::kMessage:
      return std::string(message);
    case Field::kCreated:
      return fmt::format("{:.{}f}", static_cast<double>(Milliseconds(time)) / 1000,
                         piece.precision < 0 ? 6 : std::min(piece.precision, 9));
    case Field::kMilliseconds:
      return std::to_string(Milliseconds(time) % 1000);
    case Field::kProcess:
      return std::to_string(::getpid());
    case Field::kProcessName:
      return "MainProcess";
    case Field::kThread:
      return std::to_string(::syscall(SYS_gettid));
    case Field::kThreadName:
      return "MainThread";
    case Field::kNothing:
      return "";
  }
  return "";
}

std::string LineFormat::Line(const Record& record, LogTime time, std::string_view message) const {
  std::string line;
  for (const Piece& piece : pieces_) {
    std::string value = Value(piece, record, time, message);
    std::size_t width = static_cast<std::size_t>(piece.width);
    if (value.size() < width) {
      char blank = piece.has_zeros && !piece.is_left ? '0' : ' ';
      value.insert(piece.is_left ? value.size() : 0, width - value.size(), blank);
    }
    line += value;
  }
  return line;
}

std::string LineFormat::Format(const Record& record, LogTime time) const {
  if (is_json_) return JsonLine(record, time);
  std::string message = Annotated(record);
  if (!is_multi_line_) return Line(record, time, message);
  std::vector<std::string> lines = Split(message, '\n');
  std::string text = Line(record, time, lines.empty() ? "" : lines.front());
  for (std::size_t i = 1; i < lines.size(); ++i) text += "\n" + Line(record, time, "  " + lines[i]);
  return text;
}

}  // namespace nodepool::log
