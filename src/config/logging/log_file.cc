#include "config/logging/log_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/text.h"
#include "config/logging/log_ini.h"
#include "config/yaml/yaml_reader.h"

namespace nodepool::config {
namespace {

constexpr std::uintmax_t kLargestFile = 1 << 20;
const std::string kStdout = "sys.stdout";
const std::string kStderr = "sys.stderr";

// The name with or without its packages.
std::string_view LastName(std::string_view text) { return text.substr(text.rfind('.') + 1); }

const Value* FindScalar(const Value& map, std::string_view key) {
  const Value* value = map.Find(key);
  if (value == nullptr || value->is_null()) return nullptr;
  if (!value->is_scalar()) throw ErrorAt(value->position(), fmt::format("expected one value for {}", key));
  return value;
}

std::string TextOr(const Value& map, std::string_view key, std::string otherwise) {
  const Value* value = FindScalar(map, key);
  return value == nullptr ? otherwise : value->text();
}

bool BoolOr(const Value& map, std::string_view key, bool otherwise) {
  const Value* value = FindScalar(map, key);
  if (value == nullptr) return otherwise;
  if (value->kind() == Value::Kind::kBool) return value->bool_value();
  if (value->text() == "1" || value->text() == "0") return value->text() == "1";
  throw ErrorAt(value->position(), fmt::format("expected true or false for {}", key));
}

std::int64_t NumberOr(const Value& map, std::string_view key, std::int64_t otherwise, std::int64_t min) {
  const Value* value = FindScalar(map, key);
  if (value == nullptr) return otherwise;
  if (value->kind() != Value::Kind::kInt || value->int_value() < min) {
    throw ErrorAt(value->position(), fmt::format("expected a number from {} on for {}", min, key));
  }
  return value->int_value();
}

// The level, nullopt for NOTSET.
std::optional<log::Level> LevelIn(const Value& map) {
  using log::Level;
  static const std::map<std::string_view, std::optional<Level>> levels = {
      {"NOTSET", std::nullopt},    {"0", std::nullopt},          {"DEBUG", Level::kDebug},
      {"10", Level::kDebug},       {"INFO", Level::kInfo},       {"20", Level::kInfo},
      {"WARN", Level::kWarning},   {"WARNING", Level::kWarning}, {"30", Level::kWarning},
      {"ERROR", Level::kError},    {"40", Level::kError},        {"CRITICAL", Level::kCritical},
      {"FATAL", Level::kCritical}, {"50", Level::kCritical}};
  const Value* value = FindScalar(map, "level");
  if (value == nullptr) return std::nullopt;
  auto found = levels.find(value->text());
  if (found != levels.end()) return found->second;
  throw ErrorAt(value->position(),
                fmt::format("{} is not a level; there are DEBUG, INFO, WARNING, ERROR, CRITICAL "
                            "and NOTSET",
                            Excerpt(value->text())));
}

// --- Formatters ---------------------------------------------------------------------

log::LineFormat ReadFormatter(const Value& settings) {
  if (settings.kind() != Value::Kind::kMap)
    throw ErrorAt(settings.position(), "expected the settings of a formatter");
  const Value* name = FindScalar(settings, "class");
  if (name == nullptr) name = FindScalar(settings, "()");
  std::string_view last = name == nullptr ? "Formatter" : LastName(name->text());
  if (last == "JsonFormatter") return log::LineFormat::Json();
  if (last != "Formatter" && last != "MultiLineFormatter") {
    throw ErrorAt(name->position(),
                  fmt::format("{} is not supported as a formatter; there are logging.Formatter, "
                              "nodepool.logconfig.MultiLineFormatter and "
                              "nodepool.logconfig.JsonFormatter",
                              Excerpt(name->text())));
  }
  if (std::string style = TextOr(settings, "style", "%"); style != "%") {
    throw ErrorAt(FindScalar(settings, "style")->position(), "of the styles only % is supported");
  }
  const Value* format = FindScalar(settings, "format");
  if (format == nullptr) format = FindScalar(settings, "fmt");
  Expected<log::LineFormat> parsed =
      log::LineFormat::Parse(format == nullptr ? "%(message)s" : format->text(),
                             TextOr(settings, "datefmt", ""), last == "MultiLineFormatter");
  if (!parsed) throw ErrorAt(format->position(), parsed.error().message());
  return *parsed;
}

// --- Handlers -----------------------------------------------------------------------

struct Rhythm {
  std::string_view when;
  log::LogFile::Turn turn;
  std::int64_t unit;  // seconds or days
  std::string_view suffix;
};
constexpr std::array<Rhythm, 6> kRhythms = {{{"S", log::LogFile::Turn::kSeconds, 1, "%Y-%m-%d_%H-%M-%S"},
                                             {"M", log::LogFile::Turn::kSeconds, 60, "%Y-%m-%d_%H-%M"},
                                             {"H", log::LogFile::Turn::kSeconds, 3600, "%Y-%m-%d_%H"},
                                             {"D", log::LogFile::Turn::kSeconds, 86400, "%Y-%m-%d"},
                                             {"MIDNIGHT", log::LogFile::Turn::kMidnight, 1, "%Y-%m-%d"},
                                             {"W", log::LogFile::Turn::kWeekday, 1, "%Y-%m-%d"}}};

void ReadRhythm(const Value& settings, log::LogFile& file) {
  constexpr std::int64_t kMaxDays = 100 * 365;
  std::string when = Upper(TextOr(settings, "when", "H"));
  bool is_weekday = when.size() == 2 && when[0] == 'W' && when[1] >= '0' && when[1] <= '6';
  if (is_weekday) file.weekday = when[1] - '0';
  auto rhythm =
      std::ranges::find(kRhythms, is_weekday ? std::string_view("W") : std::string_view(when), &Rhythm::when);
  if (rhythm == kRhythms.end() || (when == "W")) {
    throw ErrorAt(settings.Find("when")->position(), "expected S, M, H, D, midnight or W0 to W6 for when");
  }
  file.turn = rhythm->turn;
  file.interval = std::min(NumberOr(settings, "interval", 1, 1), kMaxDays * 86400) * rhythm->unit;
  file.suffix = rhythm->suffix;
  file.is_utc = BoolOr(settings, "utc", false);
}

log::LogFile ReadFile(const Value& settings, std::string_view class_name) {
  log::LogFile file;
  const Value* name = FindScalar(settings, "filename");
  if (name == nullptr) throw ErrorAt(settings.position(), "a filename is missing");
  file.path = std::filesystem::absolute(name->text()).string();
  if (std::string mode = TextOr(settings, "mode", "a"); mode != "a") {
    throw ErrorAt(settings.Find("mode")->position(), "log files are only added to; mode is \"a\"");
  }
  constexpr std::int64_t kMaxBackups = 10'000;
  file.is_watched = class_name == "WatchedFileHandler";
  file.max_bytes = NumberOr(settings, "maxBytes", 0, 0);
  file.backups = static_cast<int>(std::min(NumberOr(settings, "backupCount", 0, 0), kMaxBackups));
  if (class_name == "TimedRotatingFileHandler") ReadRhythm(settings, file);
  return file;
}

int FacilityOf(const Value& value) {
  static const std::vector<std::string> names = {
      "kern",   "user",   "mail",     "daemon", "auth",   "syslog", "lpr",    "news",
      "uucp",   "cron",   "authpriv", "ftp",    "",       "",       "",       "",
      "local0", "local1", "local2",   "local3", "local4", "local5", "local6", "local7"};
  if (value.kind() == Value::Kind::kInt && value.int_value() >= 0 && value.int_value() < std::ssize(names)) {
    return static_cast<int>(value.int_value());
  }
  std::string name(LastName(value.text()));
  if (name.starts_with("LOG_")) name.erase(0, 4);
  name = Lower(name);
  auto found = name.empty() ? names.end() : std::ranges::find(names, name);
  if (found != names.end()) return static_cast<int>(found - names.begin());
  throw ErrorAt(value.position(), fmt::format("{} is not a facility of syslog", Excerpt(value.text())));
}

log::Syslog ReadSyslog(const Value& settings) {
  log::Syslog syslog;
  syslog.address = "localhost";
  syslog.port = 514;
  if (const Value* address = settings.Find("address"); address != nullptr && !address->is_null()) {
    bool is_pair = address->kind() == Value::Kind::kList && address->list().size() == 2 &&
                   address->list()[0].is_scalar() && address->list()[1].kind() == Value::Kind::kInt;
    if (is_pair) {
      syslog.address = address->list()[0].text();
      syslog.port = static_cast<int>(std::clamp<std::int64_t>(address->list()[1].int_value(), 1, 65535));
    } else if (address->is_scalar()) {
      syslog.address = address->text();
      syslog.port = 0;
    } else {
      throw ErrorAt(address->position(), "expected a path, or a pair of host and port, for address");
    }
  }
  if (const Value* facility = FindScalar(settings, "facility")) syslog.facility = FacilityOf(*facility);
  return syslog;
}

log::Handler ReadHandler(const Value& settings, const std::map<std::string, log::LineFormat>& formatters) {
  if (settings.kind() != Value::Kind::kMap)
    throw ErrorAt(settings.position(), "expected the settings of a handler");
  const Value* name = FindScalar(settings, "class");
  if (name == nullptr) throw ErrorAt(settings.position(), "the class of the handler is missing");
  const HandlerClass& known = FindHandlerClass(*name);
  static const std::vector<std::string> common = {"class", "level", "formatter"};
  for (const auto& [key, value] : settings.map()) {
    bool is_known = std::ranges::find(known.arguments, key) != known.arguments.end() ||
                    std::ranges::find(common, key) != common.end();
    if (!is_known) throw ErrorAt(value.position(), fmt::format("{} has no {}", known.name, Excerpt(key)));
  }
  log::Handler handler;
  handler.kind = known.kind;
  handler.level = LevelIn(settings).value_or(log::Level::kDebug);
  // Python's own default; the one of LineFormat is for daemons without a logging file.
  handler.format = *log::LineFormat::Parse("%(message)s", "", false);
  if (const Value* formatter = FindScalar(settings, "formatter");
      formatter != nullptr && !formatter->text().empty()) {
    auto found = formatters.find(formatter->text());
    if (found == formatters.end()) {
      throw ErrorAt(formatter->position(),
                    fmt::format("there is no formatter {}", Excerpt(formatter->text())));
    }
    handler.format = found->second;
  }
  if (known.name == "StreamHandler") {
    std::string stream = TextOr(settings, "stream", kStderr);
    if (stream.starts_with("ext://")) stream.erase(0, 6);
    if (stream != kStdout && stream != kStderr) {
      throw ErrorAt(settings.Find("stream")->position(), "expected sys.stdout or sys.stderr for stream");
    }
    if (stream == kStdout) handler.kind = log::Handler::Kind::kStdout;
  }
  if (handler.kind == log::Handler::Kind::kFile) handler.file = ReadFile(settings, known.name);
  if (handler.kind == log::Handler::Kind::kSyslog) handler.syslog = ReadSyslog(settings);
  if (handler.kind == log::Handler::Kind::kJournal) {
    handler.journal.address = TextOr(settings, "address", handler.journal.address);
    handler.journal.identifier = TextOr(settings, "SYSLOG_IDENTIFIER", "");
  }
  return handler;
}

// --- Loggers --------------------------------------------------------------------------

log::LoggerSetup ReadLogger(const Value& settings, const log::Setup& setup) {
  log::LoggerSetup logger;
  if (settings.is_null()) return logger;
  if (settings.kind() != Value::Kind::kMap)
    throw ErrorAt(settings.position(), "expected the settings of a logger");
  logger.level = LevelIn(settings);
  logger.is_passed_on = BoolOr(settings, "propagate", true);
  const Value* handlers = settings.Find("handlers");
  if (handlers == nullptr || handlers->is_null()) return logger;
  if (handlers->kind() != Value::Kind::kList)
    throw ErrorAt(handlers->position(), "expected a list of handlers");
  for (const Value& name : handlers->list()) {
    if (!name.is_scalar() || !setup.handlers.contains(name.text())) {
      throw ErrorAt(name.position(), "there is no handler of this name");
    }
    logger.handlers.push_back(name.text());
  }
  return logger;
}

const Value::Map& EntriesOf(const Value& root, std::string_view key) {
  static const Value::Map none;
  const Value* entries = root.Find(key);
  if (entries == nullptr || entries->is_null()) return none;
  if (entries->kind() != Value::Kind::kMap)
    throw ErrorAt(entries->position(), fmt::format("expected a mapping for {}", key));
  return entries->map();
}

log::Setup ReadDictionary(const Value& root) {
  static const std::vector<std::string> keys = {
      "version", "formatters", "handlers", "loggers", "root", "disable_existing_loggers", "incremental"};
  for (const auto& [key, value] : root.map()) {
    if (std::ranges::find(keys, key) == keys.end()) {
      throw ErrorAt(value.position(), fmt::format("{} is not supported in a logging file", Excerpt(key)));
    }
  }
  if (NumberOr(root, "version", 0, 0) != 1) throw ErrorAt(root.position(), "expected version: 1");
  if (BoolOr(root, "incremental", false)) {
    throw ErrorAt(root.Find("incremental")->position(), "incremental: there is nothing to add to");
  }
  std::map<std::string, log::LineFormat> formatters;
  for (const auto& [name, value] : EntriesOf(root, "formatters"))
    formatters.emplace(name, ReadFormatter(value));
  log::Setup setup;
  for (const auto& [name, value] : EntriesOf(root, "handlers")) {
    setup.handlers.emplace(name, ReadHandler(value, formatters));
  }
  for (const auto& [name, value] : EntriesOf(root, "loggers")) setup.loggers[name] = ReadLogger(value, setup);
  const Value* top = root.Find("root");
  setup.loggers[""] = top == nullptr ? log::LoggerSetup() : ReadLogger(*top, setup);
  // Python's root logger has the level WARNING unless the file says otherwise.
  if (!setup.loggers[""].level) setup.loggers[""].level = log::Level::kWarning;
  return setup;
}

std::string ReadWholeFile(const std::string& path) {
  std::error_code error;
  bool is_readable = std::filesystem::is_regular_file(path, error);
  std::ifstream file(path, std::ios::binary);
  if (!is_readable || !file) throw Error(Verdict::kInvalid, "Unable to read logging config file at " + path);
  if (std::filesystem::file_size(path, error) > kLargestFile) {
    throw Error(Verdict::kInvalid, path + ": larger than a megabyte, which is not a logging file");
  }
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

log::Setup ReadText(const std::string& text, bool may_be_yaml) {
  if (may_be_yaml) {
    Expected<Value> value = ParseYaml(text);
    if (!value) throw value.error();
    if (value->kind() == Value::Kind::kMap) return ReadDictionary(*value);
  }
  Expected<Ini> ini = ParseIni(text);
  if (!ini) throw ini.error();
  return ReadDictionary(LogDictionary(*ini));
}

}  // namespace

Expected<log::Setup> ReadLogFile(const std::string& path) {
  std::string suffix = std::filesystem::path(path).extension().string();
  try {
    std::string text = ReadWholeFile(path);
    try {
      return ReadText(text, suffix == ".yaml" || suffix == ".yml" || suffix == ".json");
    } catch (const Error& error) {
      throw Error(Verdict::kInvalid, path + ": " + error.message());
    }
  } catch (const Error& error) {
    return std::unexpected(error);
  }
}

}  // namespace nodepool::config
