#include "base/json_fields.h"

#include <fmt/format.h>

namespace nodepool {

namespace json = boost::json;

std::string TextIn(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr) return "";
  if (value->is_string()) return std::string(value->as_string());
  if (value->is_int64()) return fmt::format("{}", value->as_int64());
  return "";
}

double NumberIn(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_number()) return 0;
  return value->to_number<double>();
}

bool TruthIn(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_bool() && value->as_bool();
}

const json::object* ObjectIn(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value == nullptr ? nullptr : value->if_object();
}

const json::object* ObjectIn(const json::value& value, std::string_view key) {
  return value.is_object() ? ObjectIn(value.as_object(), key) : nullptr;
}

const json::array* ArrayIn(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value == nullptr ? nullptr : value->if_array();
}

const json::array* ArrayIn(const json::value& value, std::string_view key) {
  return value.is_object() ? ArrayIn(value.as_object(), key) : nullptr;
}

}  // namespace nodepool
