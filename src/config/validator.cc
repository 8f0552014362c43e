#include "config/validator.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "config/config_loader.h"
#include "config/main_schema.h"
#include "config/schema/schema.h"
#include "config/schema/section.h"

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

namespace {

constexpr std::string_view kSchemaFailed = "Schema validation failed: ";

// The entries of the list under a key; none if it is not a list.
const Value::List& Entries(const Value& map, std::string_view key) {
  static const Value::List none;
  const Value* found = map.Find(key);
  return found != nullptr && found->kind() == Value::Kind::kList ? found->list() : none;
}

// The scalar under the key, as text; nothing if there is none.
std::optional<std::string> Text(const Value& map, std::string_view key) {
  const Value* found = map.Find(key);
  if (found == nullptr || found->is_null() || found->kind() == Value::Kind::kList ||
      found->kind() == Value::Kind::kMap) {
    return std::nullopt;
  }
  return found->text();
}

class Validator {
 public:
  explicit Validator(const LoadOptions& options) : options_(options) {}

  ValidationReport Run(const Document& document) {
    CheckContent(document.root);
    for (const RepeatedKey& repeated : document.repeated) {
      if (repeated.is_content_lost) AddError(repeated.ToString());
    }
    return std::move(report_);
  }

 private:
  void CheckContent(const Value& document) {
    for (const Problem& problem : Validate(document, MainSchema())) {
      AddError(fmt::format("{}{}", kSchemaFailed, problem.ToString()));
    }
    if (report_.exit_status() != 0) return;
    for (const Value& provider : Entries(document, "providers")) CheckProvider(provider);
    if (report_.exit_status() != 0) return;
    CheckReferences(document);
    CheckDiskImages(document);
    for (const RepeatedName& repeated : RepeatedNames(document)) AddError(repeated.ToString());
    HintAtFloats(document);
  }

  void AddError(std::string message) {
    report_.findings.push_back({Finding::Level::kError, std::move(message)});
  }
  void Add(Finding::Level level, const Value& place, std::string_view message) {
    std::string text =
        fmt::format("line {}, column {}: {}", place.position().line, place.position().column, message);
    report_.findings.push_back({level, std::move(text)});
  }

  void HintAtFloats(const Value& document) {
    const Value* timeout = document.Find("zookeeper-timeout");
    if (timeout == nullptr || timeout->kind() != Value::Kind::kInt) return;
    Add(Finding::Level::kHint, *timeout,
        fmt::format("zookeeper-timeout: the Python implementation takes only a float: write {}.0 if the file "
                    "is to be good for both",
                    timeout->text()));
  }

  void CheckProvider(const Value& provider) {
    std::string name = Text(provider, "name").value_or("");
    std::string driver = DriverOf(name, provider);
    const Schema* schema = options_.drivers ? options_.drivers(driver) : nullptr;
    if (schema == nullptr) {
      AddError(fmt::format("{}{}: unknown driver (provider {}, line {}){}", kSchemaFailed, Excerpt(driver),
                           Excerpt(name), provider.position().line,
                           DriverHint(driver, options_.driver_names)));
      return;
    }
    for (Problem& problem : Validate(provider, WithCommonSettings(*schema))) {
      problem.detail =
          fmt::format("provider {}{}{}", Excerpt(name), problem.detail.empty() ? "" : ": ", problem.detail);
      AddError(fmt::format("{}{}", kSchemaFailed, problem.ToString()));
    }
    const Value* concurrency = provider.Find("max-concurrency");
    if (concurrency != nullptr && concurrency->kind() == Value::Kind::kInt && concurrency->int_value() == 0) {
      Add(Finding::Level::kWarning, *concurrency,
          fmt::format("provider {}: max-concurrency 0 means no bound here; other implementations "
                      "take no request with it. Leave it out",
                      name));
    }
  }

  static std::set<std::string> Names(const Value::List& entries) {
    std::set<std::string> names;
    for (const Value& entry : entries) {
      if (std::optional<std::string> name = Text(entry, "name")) names.insert(*name);
    }
    return names;
  }

  void CheckReferences(const Value& document) {
    std::set<std::string> images = Names(Entries(document, "diskimages"));
    std::set<std::string> labels = Names(Entries(document, "labels"));
    for (const Value& provider : Entries(document, "providers")) {
      std::string name = Text(provider, "name").value_or("");
      if (DriverOf(name, provider) != "openstack") continue;
      for (const Value& image : Entries(provider, "diskimages")) {
        std::string image_name = Text(image, "name").value_or("");
        if (images.contains(image_name)) continue;
        AddError(fmt::format("diskimage {} in provider {} is not defined in the main diskimages list{}",
                             image_name, name, Where(image)));
      }
      for (const Value& pool : Entries(provider, "pools")) {
        for (const Value& label : Entries(pool, "labels")) CheckPoolLabel(name, label, images, labels);
      }
    }
  }

  void CheckPoolLabel(const std::string& provider, const Value& label, const std::set<std::string>& images,
                      const std::set<std::string>& labels) {
    std::string name = Text(label, "name").value_or("");
    if (!labels.contains(name)) {
      AddError(
          fmt::format("label {} in provider {} not in top-level labels{}", name, provider, Where(label)));
    }
    std::optional<std::string> image = Text(label, "diskimage");
    if (image && !images.contains(*image)) {
      AddError(
          fmt::format("label {} in provider {} uses diskimage {} which is not defined in the main diskimages "
                      "list{}",
                      name, provider, *image, Where(label)));
    }
  }

  void CheckDiskImages(const Value& document) {
    const Value::List& entries = Entries(document, "diskimages");
    std::set<std::string> all = Names(entries);
    std::set<std::string> seen;
    for (const Value& entry : entries) {
      std::string name = Text(entry, "name").value_or("");
      if (!seen.insert(name).second)
        AddError(fmt::format("diskimage {} already defined{}", name, Where(entry)));
    }
    for (const Value& entry : entries) {
      std::optional<std::string> parent = Text(entry, "parent");
      if (!parent || parent->empty() || all.contains(*parent)) continue;
      AddError(fmt::format("diskimage {} has non-existant parent: {}{}", Text(entry, "name").value_or(""),
                           *parent, Where(entry)));
    }
  }

  static std::string Where(const Value& value) { return fmt::format(" (line {})", value.position().line); }

  const LoadOptions& options_;
  ValidationReport report_;
};

}  // namespace

std::size_t ValidationReport::Count(Finding::Level level) const {
  return static_cast<std::size_t>(std::ranges::count(findings, level, &Finding::level));
}

ValidationReport ValidateDocument(const Document& document, const LoadOptions& options) {
  return Validator(options).Run(document);
}

ValidationReport ValidateDocument(const Expected<Document>& document, const LoadOptions& options) {
  if (document) return ValidateDocument(*document, options);
  return {{{Finding::Level::kError, fmt::format("YAML parsing failed: {}", document.error().message())}}};
}

ValidationReport ValidateFile(const std::string& path, const LoadOptions& options) {
  return ValidateDocument(ReadDocument(path, options.environment), options);
}

}  // namespace nodepool::config
