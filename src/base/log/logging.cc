#include "base/log/logging.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <optional>

#include "base/log/log_setup.h"
#include "base/log/log_sinks.h"
#include "base/text.h"

namespace nodepool::log {
namespace {

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

// An open handler.
struct Output {
  Level level;
  LineFormat format;
  spdlog::sink_ptr sink;
  std::optional<std::string> journal_identifier;  // of a journal
};
using Outputs = std::vector<std::shared_ptr<Output>>;

// The settings of the loggers of one name and those below it.
struct Rule {
  std::optional<Level> level;
  Outputs outputs;
  bool is_passed_on = true;
};

namespace {

std::shared_ptr<Output> Open(const Handler& handler) {
  Output output{handler.level, handler.format, OpenSink(handler), std::nullopt};
  if (handler.kind == Handler::Kind::kJournal) {
    const std::string& name = handler.journal.identifier;
    output.journal_identifier = name.empty() ? program_invocation_short_name : name;
  }
  return std::make_shared<Output>(std::move(output));
}

std::shared_ptr<Output> OpenStream(Handler::Kind kind) {
  Handler handler;
  handler.kind = kind;
  return Open(handler);
}

}  // namespace

struct Logger::Source {
  std::string name;
  std::atomic<Level> threshold = Level::kInfo;
  Outputs outputs;
};

// The process-wide part. Log lines come from the threads of the loops and of
// the blocking pools, hence the one lock of the program.
struct Registry {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Logger::Source>> sources;
  std::map<std::string, Rule> rules;
  std::vector<Capture*> captures;

  Registry() { rules[""] = {Level::kInfo, {OpenStream(Handler::Kind::kStderr)}}; }

  void Use(std::shared_ptr<Output> output) {
    std::lock_guard lock(mutex);
    for (auto& [name, rule] : rules) rule.outputs.clear();
    rules[""].outputs = {std::move(output)};
    RouteAll();
  }

  void Use(std::map<std::string, Rule> next) {
    std::lock_guard lock(mutex);
    rules = std::move(next);
    RouteAll();
  }

  void RouteAll() {
    for (auto& [name, source] : sources) Route(*source);
  }

  void Route(Logger::Source& source) const {
    std::optional<Level> level;
    bool is_passed_on = true;
    source.outputs.clear();
    std::string prefix = source.name;
    while (true) {
      if (auto found = rules.find(prefix); found != rules.end()) {
        const Rule& rule = found->second;
        if (!level) level = rule.level;
        if (is_passed_on)
          source.outputs.insert(source.outputs.end(), rule.outputs.begin(), rule.outputs.end());
        is_passed_on = is_passed_on && rule.is_passed_on;
      }
      if (prefix.empty()) break;
      auto dot = prefix.rfind('.');
      prefix = dot == std::string::npos ? "" : prefix.substr(0, dot);
    }
    source.threshold = level.value_or(Level::kWarning);
  }

  std::shared_ptr<Logger::Source> Find(std::string_view name) {
    std::lock_guard lock(mutex);
    auto& source = sources[std::string(name)];
    if (source) return source;
    source = std::make_shared<Logger::Source>();
    source->name = name;
    Route(*source);
    return source;
  }

  void Write(const Logger::Source& source, const Record& record) {
    LogTime now = std::chrono::system_clock::now();
    std::lock_guard lock(mutex);
    for (const std::shared_ptr<Output>& output : source.outputs) {
      if (record.level >= output->level) Write(*output, record, now);
    }
    for (Capture* capture : captures) capture->records_.push_back(record);
  }

  // A full disk must not end the program; records that do not fit are lost.
  static void Write(Output& output, const Record& record, LogTime now) {
    std::string text = output.format.Format(record, now);
    if (output.journal_identifier) text = JournalEntry(record, text, *output.journal_identifier);
    try {
      output.sink->log(spdlog::details::log_msg(now, {}, record.logger, ToSpdlog(record.level), text));
      output.sink->flush();
    } catch (const spdlog::spdlog_ex&) {
    }
  }

  static Registry& Get() {
    // Never destroyed: objects with static lifetime may still log at exit.
    static Registry* registry = new Registry;
    return *registry;
  }

  void SetLevel(std::string_view prefix, Level level) {
    std::lock_guard lock(mutex);
    rules[std::string(prefix)].level = level;
    RouteAll();
  }

  void ReopenFiles() {
    std::lock_guard lock(mutex);
    for (auto& [name, rule] : rules) {
      for (const std::shared_ptr<Output>& output : rule.outputs) Reopen(*output);
    }
  }

  // Until it can be opened again, records written to it are lost.
  static void Reopen(Output& output) {
    try {
      ReopenFile(*output.sink);
    } catch (const spdlog::spdlog_ex&) {
    }
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

namespace {

constexpr std::size_t kLongestLine = 16 << 10;

// Texts of others get into log lines: what a terminal would obey is made visible, and lines are cut.
std::string Shown(std::string_view text) {
  std::string shown;
  while (true) {
    std::size_t end = text.find('\n');
    shown += Excerpt(text.substr(0, end), kLongestLine, "\t");
    if (end == text.npos) return shown;
    shown += '\n';
    text.remove_prefix(end + 1);
  }
}

}  // namespace

Logger::Logger(std::string_view name) : source_(Registry::Get().Find(name)) {}

Logger Logger::About(Ids ids) const {
  Logger copy = *this;
  copy.ids_ = {Excerpt(ids.event), Excerpt(ids.request), Excerpt(ids.node)};
  return copy;
}

bool Logger::Enabled(Level level) const { return level >= source_->threshold; }

const std::string& Logger::name() const { return source_->name; }

void Logger::Write(Level level, std::string text) const {
  if (Enabled(level)) Registry::Get().Write(*source_, Record{level, source_->name, ids_, Shown(text)});
}

void SetLevel(std::string_view prefix, Level level) { Registry::Get().SetLevel(prefix, level); }

void ToStdout() { Registry::Get().Use(OpenStream(Handler::Kind::kStdout)); }

void ToStderr() { Registry::Get().Use(OpenStream(Handler::Kind::kStderr)); }

bool ToJournal() {
  Handler handler;
  handler.kind = Handler::Kind::kJournal;
  handler.format = *LineFormat::Parse("%(message)s", "", false);
  if (::access(handler.journal.address.c_str(), W_OK) != 0) return false;
  Registry::Get().Use(Open(handler));
  return true;
}

void ToFile(const std::string& path) {
  Handler handler;
  handler.kind = Handler::Kind::kFile;
  handler.file.path = path;
  handler.file.is_watched = true;
  Registry::Get().Use(Open(handler));
}

void Apply(const Setup& setup) {
  std::map<std::string, std::shared_ptr<Output>> outputs;
  for (const auto& [name, handler] : setup.handlers) outputs[name] = Open(handler);
  std::map<std::string, Rule> rules;
  for (const auto& [name, logger] : setup.loggers) {
    Rule& rule = rules[name];
    rule.level = logger.level;
    rule.is_passed_on = logger.is_passed_on;
    for (const std::string& handler : logger.handlers) rule.outputs.push_back(outputs.at(handler));
  }
  Registry::Get().Use(std::move(rules));
}

void ReopenFiles() { Registry::Get().ReopenFiles(); }

Capture::Capture() { Registry::Get().Attach(this); }

Capture::~Capture() { Registry::Get().Detach(this); }

int Capture::Count(std::string_view text) const {
  return static_cast<int>(std::count_if(records_.begin(), records_.end(), [&](const Record& record) {
    return Annotated(record).find(text) != std::string::npos;
  }));
}

}  // namespace nodepool::log
