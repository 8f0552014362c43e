#include "web/api/json_type.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>

#include "base/text.h"

namespace nodepool::web {
namespace {

namespace json = boost::json;

JsonType Simple(JsonType::Kind kind) {
  JsonType type;
  type.kind = kind;
  return type;
}

JsonType Collection(JsonType::Kind kind, JsonType entries) {
  JsonType type = Simple(kind);
  type.entries = std::make_shared<JsonType>(std::move(entries));
  return type;
}

struct Name {
  JsonType::Kind kind;
  std::string_view in_schema;
  std::string_view readable;
};
constexpr Name kNames[] = {{JsonType::Kind::kText, "string", "text"},
                           {JsonType::Kind::kWhole, "integer", "whole number"},
                           {JsonType::Kind::kNumber, "number", "number"},
                           {JsonType::Kind::kFlag, "boolean", "true or false"},
                           {JsonType::Kind::kAny, "", "any value"},
                           {JsonType::Kind::kList, "array", "list"},
                           {JsonType::Kind::kMap, "object", "object"},
                           {JsonType::Kind::kObject, "object", "object"},
                           {JsonType::Kind::kEither, "", ""}};

const Name& NameOf(JsonType::Kind kind) { return *std::ranges::find(kNames, kind, &Name::kind); }

void DescribeObject(const std::vector<FieldDoc>& fields, json::object& schema) {
  json::object properties;
  json::array required;
  for (const FieldDoc& field : fields) {
    json::object property = SchemaOf(field.type);
    if (!field.text.empty()) property["description"] = field.text;
    properties[field.key] = std::move(property);
    if (!field.is_optional) required.emplace_back(field.key);
  }
  schema["properties"] = std::move(properties);
  if (!required.empty()) schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
}

}  // namespace

JsonType JsonType::OrNull() const {
  JsonType type = *this;
  type.is_nullable = true;
  return type;
}

JsonType JsonType::Within(std::int64_t smallest, std::int64_t largest) const {
  JsonType type = *this;
  type.least = smallest;
  type.most = largest;
  return type;
}

JsonType Text() { return Simple(JsonType::Kind::kText); }
JsonType OneOf(std::vector<std::string_view> words) {
  JsonType type = Text();
  type.words = std::move(words);
  return type;
}
JsonType Whole() { return Simple(JsonType::Kind::kWhole); }
JsonType Number() { return Simple(JsonType::Kind::kNumber); }
JsonType Flag() { return Simple(JsonType::Kind::kFlag); }
JsonType Any() { return Simple(JsonType::Kind::kAny); }
JsonType ListOf(JsonType entries) { return Collection(JsonType::Kind::kList, std::move(entries)); }
JsonType MapOf(JsonType entries) { return Collection(JsonType::Kind::kMap, std::move(entries)); }
JsonType ObjectOf(std::vector<FieldDoc> fields) {
  JsonType type = Simple(JsonType::Kind::kObject);
  type.fields = std::move(fields);
  return type;
}

JsonType Either(JsonType one, JsonType other) {
  JsonType type = Simple(JsonType::Kind::kEither);
  type.alternatives = {std::move(one), std::move(other)};
  return type;
}

json::object SchemaOf(const JsonType& type) {
  json::object schema;
  if (type.kind == JsonType::Kind::kEither) {
    json::array& schemas = schema["oneOf"].emplace_array();
    for (const JsonType& alternative : type.alternatives) schemas.push_back(SchemaOf(alternative));
    return schema;
  }
  if (type.kind == JsonType::Kind::kAny) return schema;
  std::string_view name = NameOf(type.kind).in_schema;
  schema["type"] = type.is_nullable ? json::value(json::array{name, "null"}) : json::value(name);
  if (!type.words.empty()) {
    json::array words(type.words.begin(), type.words.end());
    if (type.is_nullable) words.emplace_back(nullptr);
    schema["enum"] = std::move(words);
  }
  // A text has no more characters than bytes.
  bool is_text = type.kind == JsonType::Kind::kText;
  if (type.least) schema[is_text ? "minLength" : "minimum"] = *type.least;
  if (type.most) schema[is_text ? "maxLength" : "maximum"] = *type.most;
  if (type.kind == JsonType::Kind::kList) schema["items"] = SchemaOf(*type.entries);
  if (type.kind == JsonType::Kind::kMap) schema["additionalProperties"] = SchemaOf(*type.entries);
  if (type.kind == JsonType::Kind::kObject) DescribeObject(type.fields, schema);
  return schema;
}

std::string DescriptionOf(const JsonType& type) {
  if (type.kind == JsonType::Kind::kEither)
    return DescriptionOf(type.alternatives.front()) + ", or " + DescriptionOf(type.alternatives.back());
  std::string text(NameOf(type.kind).readable);
  if (type.kind == JsonType::Kind::kList) text += " of " + DescriptionOf(*type.entries);
  if (type.kind == JsonType::Kind::kMap) text += " with values: " + DescriptionOf(*type.entries);
  if (type.most && type.kind == JsonType::Kind::kText)
    text += fmt::format(" of at most {} bytes", *type.most);
  if (type.most && type.kind == JsonType::Kind::kWhole)
    text += fmt::format(" from {} to {}", *type.least, *type.most);
  if (!type.words.empty()) text = Join({type.words.begin(), type.words.end()}, ", ");
  return type.is_nullable ? text + " or null" : text;
}

}  // namespace nodepool::web
