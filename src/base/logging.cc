#include "base/logging.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"

namespace nodepool::log {
namespace {

// Prints the level as the line format wants it: upper case, WARNING in full.
class LevelName : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    Level level = message.level == spdlog::level::debug  ? Level::kDebug
                  : message.level == spdlog::level::info ? Level::kInfo
                  : message.level == spdlog::level::warn ? Level::kWarning
                  : message.level == spdlog::level::err  ? Level::kError
                                                         : Level::kCritical;
    std::string_view name = ToString(level);
    out.append(name.data(), name.data() + name.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<LevelName>(); }
};

spdlog::level::level_enum ToSpdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
    case Level::kCritical:
      return spdlog::level::critical;
  }
  return spdlog::level::critical;
}

}  // namespace

struct Logger::Source {
  std::string name;
  Level threshold = Level::kInfo;
};

// The process-wide part. Log lines come from the loop's thread and from the
// blocking pool, hence the one lock of the program.
struct Registry {
  std::mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<Logger::Source>> sources;
  std::map<std::string, Level> levels{{"", Level::kInfo}};
  std::vector<Capture*> captures;
  spdlog::sink_ptr sink;

  Registry() { Use(std::make_shared<spdlog::sinks::stderr_sink_mt>()); }

  void Use(spdlog::sink_ptr next) {
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<LevelName>('*').set_pattern("%Y-%m-%d %H:%M:%S,%e %* %n: %v");
    next->set_formatter(std::move(formatter));
    std::lock_guard lock(mutex);
    sink = std::move(next);
  }

  Level LevelOf(const std::string& name) const {
    std::string prefix = name;
    while (true) {
      if (auto it = levels.find(prefix); it != levels.end()) return it->second;
      auto dot = prefix.rfind('.');
      prefix = dot == std::string::npos ? "" : prefix.substr(0, dot);
    }
  }

  std::shared_ptr<Logger::Source> Find(std::string_view name) {
    std::lock_guard lock(mutex);
    auto& source = sources[std::string(name)];
    if (!source)
      source =
          std::make_shared<Logger::Source>(Logger::Source{std::string(name), LevelOf(std::string(name))});
    return source;
  }

  void Write(const Record& record) {
    std::vector<std::string> lines = Split(Annotated(record), '\n');
    auto now = spdlog::log_clock::now();
    std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      std::string line = i == 0 ? lines[i] : "  " + lines[i];
      sink->log(spdlog::details::log_msg(now, {}, record.logger, ToSpdlog(record.level), line));
    }
    sink->flush();
    for (Capture* capture : captures) capture->records_.push_back(record);
  }

  static Registry& Get() {
    // Never destroyed: objects with static lifetime may still log at exit.
    static Registry* registry = new Registry;
    return *registry;
  }

  void SetLevel(std::string_view prefix, Level level) {
    std::lock_guard lock(mutex);
    levels[std::string(prefix)] = level;
    for (auto& [name, source] : sources) source->threshold = LevelOf(name);
  }

  void Attach(Capture* capture) {
    std::lock_guard lock(mutex);
    captures.push_back(capture);
  }
  void Detach(Capture* capture) {
    std::lock_guard lock(mutex);
    std::erase(captures, capture);
  }
};

std::string_view ToString(Level level) {
  switch (level) {
    case Level::kDebug:
      return "DEBUG";
    case Level::kInfo:
      return "INFO";
    case Level::kWarning:
      return "WARNING";
    case Level::kError:
      return "ERROR";
    case Level::kCritical:
      return "CRITICAL";
  }
  return "CRITICAL";
}

std::string Annotated(const Record& record) {
  std::string text;
  if (!record.ids.event.empty()) text += "[e: " + record.ids.event + "] ";
  if (!record.ids.request.empty()) text += "[node_request: " + record.ids.request + "] ";
  if (!record.ids.node.empty()) text += "[node: " + record.ids.node + "] ";
  return text + record.text;
}

Logger::Logger(std::string_view name) : source_(Registry::Get().Find(name)) {}

Logger Logger::About(Ids ids) const {
  Logger copy = *this;
  copy.ids_ = std::move(ids);
  return copy;
}

bool Logger::Enabled(Level level) const { return level >= source_->threshold; }

const std::string& Logger::name() const { return source_->name; }

void Logger::Write(Level level, std::string text) const {
  if (Enabled(level)) Registry::Get().Write(Record{level, source_->name, ids_, std::move(text)});
}

void SetLevel(std::string_view prefix, Level level) { Registry::Get().SetLevel(prefix, level); }

void ToStdout() { Registry::Get().Use(std::make_shared<spdlog::sinks::stdout_sink_mt>()); }

void ToStderr() { Registry::Get().Use(std::make_shared<spdlog::sinks::stderr_sink_mt>()); }

void ToFile(const std::string& path) {
  try {
    Registry::Get().Use(std::make_shared<spdlog::sinks::basic_file_sink_mt>(path));
  } catch (const spdlog::spdlog_ex& error) {
    throw nodepool::Error(Verdict::kInvalid, "cannot write the log file " + path + ": " + error.what());
  }
}

Capture::Capture() { Registry::Get().Attach(this); }

Capture::~Capture() { Registry::Get().Detach(this); }

int Capture::Count(std::string_view text) const {
  return static_cast<int>(std::count_if(records_.begin(), records_.end(), [&](const Record& record) {
    return Annotated(record).find(text) != std::string::npos;
  }));
}

}  // namespace nodepool::log
