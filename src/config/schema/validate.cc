#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "config/schema/schema.h"

namespace nodepool::config {
namespace {

using Kind = Value::Kind;

// The position of the walk. Whether the message for an invalid value says that it is in a
// dictionary depends on its own place only.
struct Place {
  std::string path = "data";
  std::size_t depth = 0;
  bool in_map = false;
  bool is_secret = false;

  Place Key(const std::string& key, bool secret) const {
    return {fmt::format("{}['{}']", path, key), depth + 1, true, is_secret || secret};
  }
  Place Item(std::size_t index) const {
    return {fmt::format("{}[{}]", path, index), depth + 1, false, is_secret};
  }
};

std::vector<std::string> Keys(const Schema& schema) {
  std::vector<std::string> keys;
  for (const Setting& setting : schema.settings()) {
    if (setting.removed.empty()) keys.push_back(setting.key);
  }
  return keys;
}

std::string Suggestion(const std::string& key, const Schema& schema) {
  std::optional<std::string> nearest = NearestSpelling(key, Keys(schema));
  return nearest ? fmt::format("did you mean '{}'?", *nearest) : std::string();
}

// The found value, for a message; secrets and long content are not quoted.
std::string Found(const Value& value, bool is_secret) {
  bool is_short = value.kind() != Kind::kNull && value.kind() != Kind::kList && value.kind() != Kind::kMap;
  if (!is_short || is_secret) return fmt::format("found {}", value.KindName());
  return fmt::format("found {} '{}'", value.KindName(), Excerpt(value.text()));
}

bool Fits(Schema::Kind expected, Kind found) {
  switch (expected) {
    case Schema::Kind::kAny:
      return true;
    case Schema::Kind::kNull:
      return found == Kind::kNull;
    case Schema::Kind::kBool:
      return found == Kind::kBool;
    case Schema::Kind::kInt:
      return found == Kind::kInt || found == Kind::kBool;
    case Schema::Kind::kFloat:
      return found == Kind::kFloat;
    case Schema::Kind::kString:
      return found == Kind::kString;
    case Schema::Kind::kList:
      return found == Kind::kList;
    case Schema::Kind::kMap:
    case Schema::Kind::kOpenMap:
      return found == Kind::kMap;
    case Schema::Kind::kOneOf:
      return false;
  }
  return false;
}

class Walker {
 public:
  std::vector<Problem> Check(const Value& value, const Schema& schema, const Place& place) {
    if (schema.kind() == Schema::Kind::kOneOf) return CheckChoices(value, schema, place);
    if (!schema.texts().empty()) return CheckTexts(value, schema, place);
    if (!Fits(schema.kind(), value.kind())) return {WrongType(value, schema, place)};
    switch (schema.kind()) {
      case Schema::Kind::kList:
        return CheckList(value, *schema.element(), place);
      case Schema::Kind::kMap:
        return CheckMap(value, schema, place);
      case Schema::Kind::kOpenMap:
        return CheckOpenMap(value, *schema.element(), place);
      case Schema::Kind::kInt:
      case Schema::Kind::kFloat:
        return CheckBounds(value, schema, place);
      default:
        return {};
    }
  }

 private:
  static Problem Make(std::string message, const Place& place, Position position, std::string detail) {
    return {place.path, place.depth, std::move(message), position, std::move(detail)};
  }

  static Problem WrongType(const Value& value, const Schema& schema, const Place& place) {
    std::string message =
        fmt::format("expected {}{}", schema.ExpectedName(), place.in_map ? " for dictionary value" : "");
    std::string detail = Found(value, place.is_secret);
    if (schema.kind() == Schema::Kind::kString && value.kind() != Kind::kNull &&
        value.kind() != Kind::kList && value.kind() != Kind::kMap) {
      detail += "; put quotes around it";
    } else if (schema.kind() == Schema::Kind::kFloat && value.kind() == Kind::kInt) {
      detail += "; write it with a dot";
    }
    return Make(std::move(message), place, value.position(), std::move(detail));
  }

  static std::vector<Problem> CheckTexts(const Value& value, const Schema& schema, const Place& place) {
    const std::vector<std::string>& texts = schema.texts();
    bool is_text = value.kind() == Kind::kString;
    if (is_text && std::ranges::find(texts, value.text()) != texts.end()) return {};
    std::string message = place.in_map ? "not a valid value for dictionary value" : "not a valid value";
    std::optional<std::string> nearest = is_text ? NearestSpelling(value.text(), texts) : std::nullopt;
    std::string detail =
        fmt::format("{}; expected {}{}", Found(value, place.is_secret), schema.ExpectedName(),
                    nearest ? "; did you mean '" + *nearest + "'?" : "");
    return {Make(std::move(message), place, value.position(), std::move(detail))};
  }

  // The message comes from the choice that matched furthest; among equals from the first.
  std::vector<Problem> CheckChoices(const Value& value, const Schema& schema, const Place& place) {
    std::vector<Problem> best;
    for (const Schema& choice : schema.choices()) {
      std::vector<Problem> problems = Check(value, choice, place);
      if (problems.empty()) return CheckBounds(value, schema, place);
      if (best.empty() || problems.front().depth > best.front().depth) best = std::move(problems);
    }
    if (!best.empty() && best.front().depth == place.depth) {
      best.front().detail =
          fmt::format("{}; expected {}", Found(value, place.is_secret), schema.ExpectedName());
    }
    return best;
  }

  // Problems inside an item come before those of an item as a whole.
  std::vector<Problem> CheckList(const Value& value, const Schema& item_schema, const Place& place) {
    std::vector<Problem> inside;
    std::vector<Problem> whole;
    std::size_t index = 0;
    for (const Value& item : value.list()) {
      Place at = place.Item(index++);
      for (Problem& problem : Check(item, item_schema, at)) {
        (problem.depth > at.depth ? inside : whole).push_back(std::move(problem));
      }
    }
    std::ranges::move(whole, std::back_inserter(inside));
    return inside;
  }

  std::vector<Problem> CheckMap(const Value& value, const Schema& schema, const Place& place) {
    std::vector<Problem> problems;
    for (const auto& [key, entry] : value.map()) {
      const Setting* setting = schema.Find(key);
      Place at = place.Key(key, setting != nullptr && setting->is_secret);
      bool is_known = setting != nullptr && setting->removed.empty() && !setting->is_daemon_only;
      const Schema* entry_schema = setting == nullptr ? schema.element()
                                   : is_known         ? &setting->schema
                                                      : nullptr;
      if (entry_schema == nullptr) {
        problems.push_back(
            Make("extra keys not allowed", at, entry.position(), WhyExtra(key, setting, schema)));
        continue;
      }
      std::ranges::move(Check(entry, *entry_schema, at), std::back_inserter(problems));
    }
    for (const Setting& setting : schema.settings()) {
      bool is_required = setting.is_required || setting.is_required_by_validator;
      if (!is_required || value.Find(setting.key) != nullptr) continue;
      problems.push_back(Make("required key not provided", place.Key(setting.key, false), value.position(),
                              fmt::format("expected {}: {}", setting.schema.ExpectedName(), setting.help)));
    }
    CheckExclusive(value, schema, place, problems);
    if (problems.empty()) CheckRequiredGroups(value, schema, place, problems);
    return problems;
  }

  static std::string WhyExtra(const std::string& key, const Setting* setting, const Schema& schema) {
    if (setting != nullptr && !setting->removed.empty()) return setting->removed;
    if (setting != nullptr) return "the daemons read it, but it is not part of the format";
    return Suggestion(key, schema);
  }

  static void CheckExclusive(const Value& value, const Schema& schema, const Place& place,
                             std::vector<Problem>& problems) {
    for (const std::vector<std::string>& group : schema.exclusive_groups()) {
      auto present =
          std::ranges::count_if(group, [&](const std::string& key) { return value.Find(key) != nullptr; });
      if (present < 2) continue;
      problems.push_back(Make("two or more values in the same group of exclusion", place, value.position(),
                              fmt::format("only one of {} is allowed", Join(group, ", "))));
    }
  }

  static void CheckRequiredGroups(const Value& value, const Schema& schema, const Place& place,
                                  std::vector<Problem>& problems) {
    for (const std::vector<std::string>& group : schema.required_groups()) {
      if (std::ranges::any_of(group, [&](const std::string& key) { return value.Find(key) != nullptr; }))
        continue;
      problems.push_back(Make("required key not provided", place.Key(group.front(), false), value.position(),
                              fmt::format("one of {} is needed", Join(group, ", "))));
      return;
    }
  }

  std::vector<Problem> CheckOpenMap(const Value& value, const Schema& entry_schema, const Place& place) {
    std::vector<Problem> problems;
    for (const auto& [key, entry] : value.map()) {
      std::ranges::move(Check(entry, entry_schema, place.Key(key, false)), std::back_inserter(problems));
    }
    return problems;
  }

  static std::vector<Problem> CheckBounds(const Value& value, const Schema& schema, const Place& place) {
    if (value.kind() != Kind::kInt && value.kind() != Kind::kFloat) return {};
    double number = value.kind() == Kind::kInt ? static_cast<double>(value.int_value()) : value.float_value();
    std::optional<std::string> expected = schema.OutOfBounds(number);
    if (!expected) return {};
    return {Make("expected " + *expected, place, value.position(), Found(value, place.is_secret))};
  }
};

void CollectUnknown(const Value& value, const Schema& schema, const std::string& place,
                    std::vector<std::string>& warnings) {
  if (schema.kind() == Schema::Kind::kOneOf) {
    // A choice that does not match the value reports nothing about its keys.
    for (const Schema& choice : schema.choices()) {
      if (Fits(choice.kind(), value.kind())) return CollectUnknown(value, choice, place, warnings);
    }
    return;
  }
  const Schema* element = schema.element();
  if (value.kind() == Kind::kList && schema.kind() == Schema::Kind::kList) {
    std::size_t index = 0;
    for (const Value& item : value.list()) {
      CollectUnknown(item, *element, fmt::format("{}[{}]", place, index++), warnings);
    }
  }
  if (value.kind() != Kind::kMap) return;
  if (schema.kind() != Schema::Kind::kMap && schema.kind() != Schema::Kind::kOpenMap) return;
  for (const auto& [key, entry] : value.map()) {
    std::string at = place.empty() ? key : fmt::format("{}.{}", place, key);
    const Setting* setting = schema.Find(key);
    if (setting != nullptr && setting->removed.empty()) {
      CollectUnknown(entry, setting->schema, at, warnings);
    } else if (setting == nullptr && element != nullptr) {
      CollectUnknown(entry, *element, at, warnings);
    } else {
      std::string hint = setting != nullptr ? setting->removed : Suggestion(key, schema);
      warnings.push_back(fmt::format("line {}, column {}: {} is not a known setting and has no effect{}{}",
                                     entry.position().line, entry.position().column, Excerpt(at, 200),
                                     hint.empty() ? "" : "; ", hint));
    }
  }
}

}  // namespace

std::string Problem::ToString() const {
  std::string where = path == "data" ? message : fmt::format("{} @ {}", message, path);
  std::string line = fmt::format("line {}, column {}", position.line, position.column);
  return detail.empty() ? fmt::format("{} ({})", where, line)
                        : fmt::format("{} ({}: {})", where, line, detail);
}

std::vector<Problem> Validate(const Value& value, const Schema& schema) {
  return Walker().Check(value, schema, Place());
}

std::vector<std::string> UnknownKeys(const Value& value, const Schema& schema, const std::string& place) {
  std::vector<std::string> warnings;
  CollectUnknown(value, schema, place, warnings);
  return warnings;
}

}  // namespace nodepool::config
