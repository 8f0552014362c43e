#include "config/schema/schema_docs.h"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>

#include "base/text.h"

namespace nodepool::config {
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
