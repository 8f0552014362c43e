#include "config/logging/log_ini.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>

#include "base/text.h"

namespace nodepool::config {

namespace {

constexpr std::string_view kBlanks = " \t\r";

}  // namespace

Expected<Ini> ParseIni(std::string_view text) {
  Ini ini;
  std::map<std::string, IniValue>* section = nullptr;
  IniValue* open = nullptr;  // the value that an indented line continues
  int number = 0;
  auto fail = [&](std::string_view what) { return std::unexpected(ErrorAt({number, 1}, what)); };
  for (const std::string& line : Split(text, '\n')) {
    ++number;
    std::string_view content = Trim(line, kBlanks);
    if (content.empty() || content.front() == '#' || content.front() == ';') continue;
    if (kBlanks.contains(line.front()) && open != nullptr) {
      open->text += "\n" + std::string(content);
      continue;
    }
    if (content.front() == '[') {
      if (content.back() != ']') return fail("expected ] at the end of a section's name");
      std::string name(content.substr(1, content.size() - 2));
      auto [place, is_new] = ini.try_emplace(name);
      if (!is_new) return fail(fmt::format("the section [{}] is in the file twice", Excerpt(name)));
      section = &place->second;
      open = nullptr;
      continue;
    }
    std::size_t mark = content.find_first_of("=:");
    if (mark == std::string_view::npos || mark == 0) return fail("expected [section] or key = value");
    if (section == nullptr) return fail("the first line has to be a [section]");
    std::string key = Lower(Trim(content.substr(0, mark), kBlanks));
    std::string_view value = Trim(content.substr(mark + 1), kBlanks);
    int column =
        static_cast<int>(value.empty() ? line.size() : static_cast<std::size_t>(line.find(value, mark))) + 1;
    auto [place, is_new] = section->try_emplace(key, IniValue{std::string(value), {number, column}});
    if (!is_new) return fail(fmt::format("\"{}\" is in its section twice", Excerpt(key)));
    open = &place->second;
  }
  return ini;
}

namespace {

constexpr int kDeepest = 20;

class Parser {
 public:
  Parser(std::string_view text, Position start) : text_(text), start_(start) {}

  Value ParseAll() {
    Value value = ParseValue(0);
    SkipBlanks();
    if (place_ < text_.size()) Fail("nothing may follow here");
    return value;
  }

 private:
  Position position() const { return {start_.line, start_.column + static_cast<int>(place_)}; }
  [[noreturn]] void Fail(std::string_view what) const { throw ErrorAt(position(), what); }

  char Peek() const { return place_ < text_.size() ? text_[place_] : '\0'; }
  void SkipBlanks() {
    while (std::isspace(static_cast<unsigned char>(Peek())) != 0) ++place_;
  }
  bool Take(char c) {
    SkipBlanks();
    if (Peek() != c) return false;
    ++place_;
    return true;
  }

  Value ParseValue(int depth) {
    if (depth > kDeepest) Fail("this is nested too deeply");
    SkipBlanks();
    Position here = position();
    char c = Peek();
    if (c == '(') return ParseSequence(')', depth, here);
    if (c == '[') return ParseSequence(']', depth, here);
    if (c == '{') return ParseMap(depth, here);
    if (c == '\'' || c == '"') return Value::String(ParseText(), here);
    if (std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-') return ParseNumber(here);
    if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_') return ParseName(here);
    Fail("expected a number, a text in quotes, a tuple, or a name such as sys.stdout");
  }

  Value ParseSequence(char end, int depth, Position here) {
    ++place_;
    Value::List items;
    while (!Take(end)) {
      items.push_back(ParseValue(depth + 1));
      bool is_first_alone = !Take(',');
      if (!is_first_alone) continue;
      if (!Take(end)) Fail(fmt::format("expected a comma or {}", end));
      // Blanks and parentheses around a single value do not make a tuple.
      if (end == ')' && items.size() == 1) return items.front();
      break;
    }
    return Value::MakeList(std::move(items), here);
  }

  Value ParseMap(int depth, Position here) {
    ++place_;
    Value::Map entries;
    while (!Take('}')) {
      SkipBlanks();
      if (Peek() != '\'' && Peek() != '"') Fail("expected a key in quotes");
      std::string key = ParseText();
      if (!Take(':')) Fail("expected a colon");
      entries.emplace_back(std::move(key), ParseValue(depth + 1));
      if (Take(',')) continue;
      if (!Take('}')) Fail("expected a comma or }");
      break;
    }
    return Value::MakeMap(std::move(entries), here);
  }

  std::string ParseText() {
    char quote = text_[place_++];
    std::string text;
    while (Peek() != quote) {
      if (place_ >= text_.size()) Fail("this text has no closing quote");
      char c = text_[place_++];
      if (c == '\\') {
        char next = Peek();
        ++place_;
        c = next == 'n' ? '\n' : next == 't' ? '\t' : next;
        if (next != 'n' && next != 't' && next != '\\' && next != '\'' && next != '"') {
          Fail("of the escapes only \\n, \\t, \\\\, \\' and \\\" are known");
        }
      }
      text += c;
    }
    ++place_;
    return text;
  }

  Value ParseNumber(Position here) {
    std::size_t first = place_;
    while (std::isalnum(static_cast<unsigned char>(Peek())) != 0 || Peek() == '.' || Peek() == '-') ++place_;
    std::string word(text_.substr(first, place_ - first));
    const char* end = word.data() + word.size();
    std::int64_t whole = 0;
    if (auto [rest, error] = std::from_chars(word.data(), end, whole); error == std::errc() && rest == end) {
      return Value::Int(whole, word, here);
    }
    double number = 0;
    auto [rest, error] = std::from_chars(word.data(), end, number);
    if (error != std::errc() || rest != end)
      throw ErrorAt(here, fmt::format("{} is not a number", Excerpt(word)));
    return Value::Float(number, word, here);
  }

  Value ParseName(Position here) {
    std::size_t first = place_;
    while (std::isalnum(static_cast<unsigned char>(Peek())) != 0 || Peek() == '.' || Peek() == '_') ++place_;
    std::string word(text_.substr(first, place_ - first));
    SkipBlanks();
    if (Peek() == '(') Fail("nothing is called here; write the value itself");
    if (word == "None") return Value::Null(here);
    if (word == "True" || word == "False") return Value::Bool(word == "True", word, here);
    return Value::String(std::move(word), here);
  }

  std::string_view text_;
  Position start_;
  std::size_t place_ = 0;
};

}  // namespace

Expected<Value> ParsePythonLiteral(std::string_view text, Position start) {
  try {
    return Parser(text, start).ParseAll();
  } catch (const Error& error) {
    return std::unexpected(error);
  }
}

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
      // In systemd's package for Python.
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

namespace {

class IniDictionary {
 public:
  explicit IniDictionary(const Ini& ini) : ini_(ini) {}

  Value Make() {
    Value::Map formatters, handlers, loggers;
    Value root;
    for (const std::string& id : Keys("formatters"))
      formatters.emplace_back(id, Formatter("formatter_" + id));
    for (const std::string& id : Keys("handlers"))
      handlers.emplace_back(id, HandlerSettings("handler_" + id));
    for (const std::string& id : Keys("loggers")) {
      Value settings = LoggerSettings("logger_" + id);
      if (id == "root") {
        root = settings;
      } else {
        loggers.emplace_back(Required("logger_" + id, "qualname").text, std::move(settings));
      }
    }
    if (root.is_null()) throw ErrorAt({1, 1}, "[loggers]: root is missing in keys");
    Value::Map whole;
    whole.emplace_back("version", Value::Int(1, "1", {1, 1}));
    whole.emplace_back("formatters", Value::MakeMap(std::move(formatters), {1, 1}));
    whole.emplace_back("handlers", Value::MakeMap(std::move(handlers), {1, 1}));
    whole.emplace_back("loggers", Value::MakeMap(std::move(loggers), {1, 1}));
    whole.emplace_back("root", std::move(root));
    return Value::MakeMap(std::move(whole), {1, 1});
  }

 private:
  const std::map<std::string, IniValue>& Of(const std::string& section) const {
    auto found = ini_.find(section);
    if (found == ini_.end())
      throw ErrorAt({1, 1}, fmt::format("the section [{}] is missing", Excerpt(section)));
    return found->second;
  }
  const IniValue& Required(const std::string& section, const std::string& key) const {
    auto found = Of(section).find(key);
    if (found != Of(section).end()) return found->second;
    throw ErrorAt({1, 1}, fmt::format("[{}]: {} is missing", Excerpt(section), key));
  }

  static std::vector<std::string> List(const std::string& text) {
    std::vector<std::string> items;
    for (std::string item : Split(text, ',')) {
      std::erase_if(item, [](char c) { return c == ' ' || c == '\t' || c == '\n'; });
      if (!item.empty()) items.push_back(std::move(item));
    }
    return items;
  }
  std::vector<std::string> Keys(const std::string& section) const {
    if (section == "formatters" && !ini_.contains(section)) return {};
    return List(Required(section, "keys").text);
  }

  void Copy(const std::string& section, const std::vector<std::string>& keys, Value::Map& to) const {
    for (const std::string& key : keys) {
      auto found = Of(section).find(key);
      if (found == Of(section).end() || found->second.text.empty()) continue;
      to.emplace_back(key, Value::String(found->second.text, found->second.position));
    }
  }

  Value Formatter(const std::string& section) const {
    Value::Map settings;
    Copy(section, {"format", "datefmt", "style", "class"}, settings);
    return Value::MakeMap(std::move(settings), {1, 1});
  }

  Value LoggerSettings(const std::string& section) const {
    Value::Map settings;
    Copy(section, {"level", "propagate"}, settings);
    const IniValue& names = Required(section, "handlers");
    Value::List handlers;
    for (std::string& name : List(names.text))
      handlers.push_back(Value::String(std::move(name), names.position));
    settings.emplace_back("handlers", Value::MakeList(std::move(handlers), names.position));
    return Value::MakeMap(std::move(settings), names.position);
  }

  // Arguments get the names that the class gives them.
  Value HandlerSettings(const std::string& section) const {
    Value::Map settings;
    Copy(section, {"class", "level", "formatter"}, settings);
    const IniValue& class_name = Required(section, "class");
    Value name = Value::String(class_name.text, class_name.position);
    const HandlerClass& known = FindHandlerClass(name);
    if (auto args = Of(section).find("args"); args != Of(section).end() && !args->second.text.empty()) {
      Expected<Value> values = ParsePythonLiteral(args->second.text, args->second.position);
      if (!values) throw values.error();
      if (values->kind() != Value::Kind::kList || values->list().size() > known.arguments.size()) {
        throw ErrorAt(args->second.position,
                      fmt::format("expected a tuple of at most {} values, such as ('a', 1) or ('a',)",
                                  known.arguments.size()));
      }
      for (std::size_t i = 0; i < values->list().size(); ++i) {
        settings.emplace_back(known.arguments[i], values->list()[i]);
      }
    }
    if (auto named = Of(section).find("kwargs"); named != Of(section).end() && !named->second.text.empty()) {
      Expected<Value> values = ParsePythonLiteral(named->second.text, named->second.position);
      if (!values) throw values.error();
      if (values->kind() != Value::Kind::kMap)
        throw ErrorAt(named->second.position, "expected a mapping for kwargs");
      std::ranges::copy(values->map(), std::back_inserter(settings));
    }
    return Value::MakeMap(std::move(settings), class_name.position);
  }

  const Ini& ini_;
};

}  // namespace

Value LogDictionary(const Ini& ini) { return IniDictionary(ini).Make(); }

}  // namespace nodepool::config
