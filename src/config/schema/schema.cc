#include "config/schema/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>

#include "base/text.h"

namespace nodepool::config {

struct Schema::Data {
  Kind kind = Kind::kAny;
  std::vector<Setting> settings;
  std::optional<Schema> element;
  std::vector<Schema> choices;
  std::vector<std::string> texts;
  std::vector<std::vector<std::string>> required_groups;
  std::vector<std::vector<std::string>> exclusive_groups;
  std::optional<double> min;
  std::optional<double> max;
};

Schema::Schema(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

Schema Schema::Any() { return Schema(std::make_shared<const Data>(Data{.kind = Kind::kAny})); }
Schema Schema::Null() { return Schema(std::make_shared<const Data>(Data{.kind = Kind::kNull})); }
Schema Schema::Bool() { return Schema(std::make_shared<const Data>(Data{.kind = Kind::kBool})); }
Schema Schema::Int() { return Schema(std::make_shared<const Data>(Data{.kind = Kind::kInt})); }
Schema Schema::Float() { return Schema(std::make_shared<const Data>(Data{.kind = Kind::kFloat})); }
Schema Schema::String() { return Schema(std::make_shared<const Data>(Data{.kind = Kind::kString})); }
Schema Schema::Among(std::vector<std::string> texts) {
  return Schema(std::make_shared<const Data>(Data{.kind = Kind::kString, .texts = std::move(texts)}));
}

Schema Schema::Number() { return OneOf({Int(), Float()}); }
Schema Schema::Port() { return Int().Between(1, 65535); }

Schema Schema::List(Schema item) {
  return Schema(std::make_shared<const Data>(Data{.kind = Kind::kList, .element = std::move(item)}));
}

Schema Schema::Map(std::vector<Setting> settings) {
  return Schema(std::make_shared<const Data>(Data{.kind = Kind::kMap, .settings = std::move(settings)}));
}

Schema Schema::OpenMap(Schema value) {
  return Schema(std::make_shared<const Data>(Data{.kind = Kind::kOpenMap, .element = std::move(value)}));
}

Schema Schema::MapWithOthers(std::vector<Setting> settings, Schema others) {
  return Schema(std::make_shared<const Data>(
      Data{.kind = Kind::kMap, .settings = std::move(settings), .element = std::move(others)}));
}

Schema Schema::OneOf(std::vector<Schema> choices) {
  return Schema(std::make_shared<const Data>(Data{.kind = Kind::kOneOf, .choices = std::move(choices)}));
}

Schema Schema::RequireOneOf(std::vector<std::string> keys) const {
  Data copy = *data_;
  copy.required_groups.push_back(std::move(keys));
  return Schema(std::make_shared<const Data>(std::move(copy)));
}

Schema Schema::Exclusive(std::vector<std::string> keys) const {
  Data copy = *data_;
  copy.exclusive_groups.push_back(std::move(keys));
  return Schema(std::make_shared<const Data>(std::move(copy)));
}

Schema Schema::Between(double min, double max) const {
  Data copy = *data_;
  copy.min = min;
  copy.max = max;
  return Schema(std::make_shared<const Data>(std::move(copy)));
}

Schema Schema::AtLeast(double min) const {
  Data copy = *data_;
  copy.min = min;
  return Schema(std::make_shared<const Data>(std::move(copy)));
}

Schema Schema::AtMost(double max) const {
  Data copy = *data_;
  copy.max = max;
  return Schema(std::make_shared<const Data>(std::move(copy)));
}

Schema Schema::With(std::vector<Setting> settings) const {
  Data copy = *data_;
  for (Setting& setting : settings) {
    auto same = std::ranges::find(copy.settings, setting.key, &Setting::key);
    if (same != copy.settings.end()) {
      *same = std::move(setting);
    } else {
      copy.settings.push_back(std::move(setting));
    }
  }
  return Schema(std::make_shared<const Data>(std::move(copy)));
}

Schema::Kind Schema::kind() const { return data_->kind; }
const std::vector<Setting>& Schema::settings() const { return data_->settings; }

const Setting* Schema::Find(std::string_view key) const {
  auto found = std::ranges::find(data_->settings, key, &Setting::key);
  return found == data_->settings.end() ? nullptr : &*found;
}

const Schema* Schema::element() const { return data_->element ? &*data_->element : nullptr; }
const std::vector<Schema>& Schema::choices() const { return data_->choices; }
const std::vector<std::string>& Schema::texts() const { return data_->texts; }
const std::vector<std::vector<std::string>>& Schema::required_groups() const {
  return data_->required_groups;
}
const std::vector<std::vector<std::string>>& Schema::exclusive_groups() const {
  return data_->exclusive_groups;
}
std::optional<double> Schema::min() const { return data_->min; }
std::optional<double> Schema::max() const { return data_->max; }

std::optional<std::string> Schema::OutOfBounds(double number) const {
  bool is_within = (!min() || number >= *min()) && (!max() || number <= *max());
  if (is_within) return std::nullopt;
  if (!max()) return fmt::format("a number of at least {}", *min());
  if (!min()) return fmt::format("a number of at most {}", *max());
  return fmt::format("a number from {} to {}", *min(), *max());
}

std::string Schema::ExpectedName() const {
  switch (kind()) {
    case Kind::kAny:
      return "anything";
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return texts().empty() ? "str" : "one of " + Join(texts(), ", ");
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a dictionary";
    case Kind::kOpenMap:
      return "a dictionary";
    case Kind::kOneOf: {
      std::string names;
      for (const Schema& choice : choices()) names += (names.empty() ? "" : " or ") + choice.ExpectedName();
      return names;
    }
  }
  return "";
}

Setting::Setting(std::string key, Schema schema, std::string help)
    : key(std::move(key)), schema(std::move(schema)), help(std::move(help)) {}

Setting::Setting(std::string key, std::string help)
    : Setting(std::move(key), Schema::Any(), std::move(help)) {}

Setting Setting::Required() && {
  is_required = true;
  return std::move(*this);
}

Setting Setting::RequiredByValidator() && {
  is_required_by_validator = true;
  return std::move(*this);
}

Setting Setting::Default(boost::json::value value) && {
  default_value = std::move(value);
  return std::move(*this);
}

Setting Setting::Inherited() && {
  is_inherited = true;
  return std::move(*this);
}

Setting Setting::Unit(std::string text) && {
  unit = std::move(text);
  return std::move(*this);
}

Setting Setting::NeedsRestart() && {
  needs_restart = true;
  return std::move(*this);
}

Setting Setting::Secret() && {
  is_secret = true;
  return std::move(*this);
}

Setting Setting::DaemonOnly() && {
  is_daemon_only = true;
  return std::move(*this);
}

Setting Setting::Removed(std::string instead) && {
  removed = std::move(instead);
  return std::move(*this);
}

namespace {

std::string TypeName(const Schema& schema) {
  switch (schema.kind()) {
    case Schema::Kind::kAny:
      return "any";
    case Schema::Kind::kNull:
      return "null";
    case Schema::Kind::kBool:
      return "boolean";
    case Schema::Kind::kInt:
      return "integer";
    case Schema::Kind::kFloat:
      return "float";
    case Schema::Kind::kString:
      return schema.texts().empty() ? "string" : "one of " + Join(schema.texts(), ", ");
    case Schema::Kind::kList:
      return fmt::format("list of {}", TypeName(*schema.element()));
    case Schema::Kind::kMap:
      return "mapping";
    case Schema::Kind::kOpenMap:
      return fmt::format("mapping to {}", TypeName(*schema.element()));
    case Schema::Kind::kOneOf:
      break;
  }
  std::string names;
  for (const Schema& choice : schema.choices()) names += (names.empty() ? "" : " or ") + TypeName(choice);
  return names;
}

std::string DefaultText(const Setting& setting) {
  if (setting.is_required || setting.is_required_by_validator) return "required";
  if (setting.default_value.is_null()) return "";
  if (const double* number = setting.default_value.if_double()) return fmt::format("`{}`", *number);
  return fmt::format("`{}`", boost::json::serialize(setting.default_value));
}

// ", 1 to 10": after the type.
std::string BoundsText(const Schema& schema) {
  if (schema.min() && schema.max()) return fmt::format(", {} to {}", *schema.min(), *schema.max());
  if (schema.min()) return fmt::format(", at least {}", *schema.min());
  return schema.max() ? fmt::format(", at most {}", *schema.max()) : "";
}

// The mapping inside a setting's value, with the parts that it adds to the path.
const Schema* Inner(const Schema& schema, std::string& path) {
  if (schema.kind() == Schema::Kind::kMap) return &schema;
  if (schema.kind() == Schema::Kind::kList) {
    path += "[]";
    return Inner(*schema.element(), path);
  }
  for (const Schema& choice : schema.choices()) {
    std::string choice_path = path;
    if (const Schema* inner = Inner(choice, choice_path)) {
      path = choice_path;
      return inner;
    }
  }
  return nullptr;
}

// The text as a cell of a table.
std::string Cell(std::string_view text) {
  std::string cell;
  for (char c : text) cell += c == '|' ? std::string("\\|") : std::string(1, c);
  return cell;
}

void AppendRows(const Schema& schema, const std::string& prefix, std::string& table) {
  for (const Setting& setting : schema.settings()) {
    if (!setting.removed.empty()) continue;
    std::string path = prefix + setting.key;
    std::string unit = setting.unit.empty() ? "" : fmt::format(", {}", setting.unit);
    table += fmt::format("| `{}` | {}{}{} | {} | {} | {} |\n", path, TypeName(setting.schema),
                         BoundsText(setting.schema), unit, DefaultText(setting),
                         setting.needs_restart ? "restart" : "reload", Cell(setting.help));
    if (const Schema* inner = Inner(setting.schema, path)) AppendRows(*inner, path + ".", table);
  }
}

boost::json::object MapSchema(const Schema& schema) {
  boost::json::object properties;
  boost::json::array required;
  for (const Setting& setting : schema.settings()) {
    if (!setting.removed.empty() || setting.is_daemon_only) continue;
    boost::json::object property = ToJsonSchema(setting.schema);
    property["description"] = setting.help;
    if (!setting.default_value.is_null()) property["default"] = setting.default_value;
    properties[setting.key] = std::move(property);
    if (setting.is_required || setting.is_required_by_validator) required.emplace_back(setting.key);
  }
  boost::json::object result{{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) result["required"] = std::move(required);
  if (schema.element() != nullptr) {
    result["additionalProperties"] = ToJsonSchema(*schema.element());
  } else {
    result["additionalProperties"] = false;
  }
  return result;
}

}  // namespace

std::string ToMarkdown(const Schema& schema) {
  std::string table =
      "| setting | type | default | a change takes effect at | meaning |\n| --- | --- | --- | --- | --- |\n";
  AppendRows(schema, "", table);
  return table;
}

boost::json::object ToJsonSchema(const Schema& schema) {
  boost::json::object result;
  switch (schema.kind()) {
    case Schema::Kind::kAny:
      return result;
    case Schema::Kind::kNull:
      result["type"] = "null";
      break;
    case Schema::Kind::kBool:
      result["type"] = "boolean";
      break;
    case Schema::Kind::kInt:
      result["type"] = "integer";
      break;
    case Schema::Kind::kFloat:
      result["type"] = "number";
      break;
    case Schema::Kind::kString:
      result["type"] = "string";
      if (!schema.texts().empty()) result["enum"] = boost::json::value_from(schema.texts());
      break;
    case Schema::Kind::kList:
      result["type"] = "array";
      result["items"] = ToJsonSchema(*schema.element());
      break;
    case Schema::Kind::kMap:
      return MapSchema(schema);
    case Schema::Kind::kOpenMap:
      result["type"] = "object";
      result["additionalProperties"] = ToJsonSchema(*schema.element());
      break;
    case Schema::Kind::kOneOf: {
      boost::json::array choices;
      for (const Schema& choice : schema.choices()) choices.emplace_back(ToJsonSchema(choice));
      result["anyOf"] = std::move(choices);
      break;
    }
  }
  if (schema.min()) result["minimum"] = *schema.min();
  if (schema.max()) result["maximum"] = *schema.max();
  return result;
}

}  // namespace nodepool::config
