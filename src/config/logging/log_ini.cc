#include "config/logging/log_ini.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "config/logging/log_handler_class.h"
#include "config/logging/python_literal.h"

namespace nodepool::config {
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
