#include "config/yaml/value.h"

#include <fmt/format.h>

#include <cassert>
#include <cmath>

namespace nodepool::config {

Error ErrorAt(Position position, std::string_view message) {
  return Error(Verdict::kInvalid,
               fmt::format("line {}, column {}: {}", position.line, position.column, message));
}

struct Value::Data {
  Kind kind = Kind::kNull;
  Position position;
  std::string text;
  std::variant<std::monostate, bool, std::int64_t, double, List, Map> content;
};

Value::Value() {
  static const std::shared_ptr<const Data> null = std::make_shared<Data>();
  data_ = null;
}

Value::Value(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

Value Value::Null(Position position) {
  return Value(std::make_shared<const Data>(Data{.kind = Kind::kNull, .position = position}));
}

Value Value::Bool(bool value, std::string text, Position position) {
  return Value(std::make_shared<const Data>(Data{Kind::kBool, position, std::move(text), value}));
}

Value Value::Int(std::int64_t value, std::string text, Position position) {
  return Value(std::make_shared<const Data>(Data{Kind::kInt, position, std::move(text), value}));
}

Value Value::Float(double value, std::string text, Position position) {
  return Value(std::make_shared<const Data>(Data{Kind::kFloat, position, std::move(text), value}));
}

Value Value::String(std::string value, Position position) {
  return Value(std::make_shared<const Data>(Data{Kind::kString, position, std::move(value), {}}));
}

Value Value::Timestamp(std::string text, Position position) {
  return Value(std::make_shared<const Data>(Data{Kind::kTimestamp, position, std::move(text), {}}));
}

Value Value::MakeList(List items, Position position) {
  return Value(std::make_shared<const Data>(Data{Kind::kList, position, {}, std::move(items)}));
}

Value Value::MakeMap(Map entries, Position position) {
  return Value(std::make_shared<const Data>(Data{Kind::kMap, position, {}, std::move(entries)}));
}

Value::Kind Value::kind() const { return data_->kind; }
Position Value::position() const { return data_->position; }
bool Value::bool_value() const { return std::get<bool>(data_->content); }
std::int64_t Value::int_value() const { return std::get<std::int64_t>(data_->content); }
double Value::float_value() const { return std::get<double>(data_->content); }
const Value::List& Value::list() const { return std::get<List>(data_->content); }
const Value::Map& Value::map() const { return std::get<Map>(data_->content); }

const std::string& Value::text() const {
  assert(kind() != Kind::kList && kind() != Kind::kMap);
  return data_->text;
}

const Value* Value::Find(std::string_view key) const {
  if (kind() != Kind::kMap) return nullptr;
  for (const auto& [name, value] : map()) {
    if (name == key) return &value;
  }
  return nullptr;
}

std::string_view Value::KindName() const {
  switch (kind()) {
    case Kind::kNull:
      return "nothing";
    case Kind::kBool:
      return "a boolean";
    case Kind::kInt:
      return "an integer";
    case Kind::kFloat:
      return "a float";
    case Kind::kString:
      return "a string";
    case Kind::kTimestamp:
      return "a date";
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a mapping";
  }
  return "something unknown";
}

boost::json::value Value::ToJson() const {
  switch (kind()) {
    case Kind::kNull:
      return nullptr;
    case Kind::kBool:
      return bool_value();
    case Kind::kInt:
      return int_value();
    case Kind::kFloat:
      // JSON has no infinity and no NaN.
      if (!std::isfinite(float_value())) return boost::json::string(text());
      return float_value();
    case Kind::kString:
    case Kind::kTimestamp:
      return boost::json::string(text());
    case Kind::kList: {
      boost::json::array array;
      array.reserve(list().size());
      for (const Value& item : list()) array.push_back(item.ToJson());
      return array;
    }
    case Kind::kMap: {
      boost::json::object object;
      object.reserve(map().size());
      for (const auto& [key, value] : map()) object.insert_or_assign(key, value.ToJson());
      return object;
    }
  }
  return nullptr;
}

}  // namespace nodepool::config
