#include "base/json_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>

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

json::value ParsedJson(std::string_view text) {
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  return error ? json::value(nullptr) : value;
}

std::vector<const json::object*> ObjectsIn(const json::object& object, std::string_view key,
                                           std::size_t most) {
  std::vector<const json::object*> objects;
  const json::array* list = ArrayIn(object, key);
  for (std::size_t i = 0; list != nullptr && i < std::min(list->size(), most); ++i) {
    if ((*list)[i].is_object()) objects.push_back(&(*list)[i].get_object());
  }
  return objects;
}

const json::object* FirstIn(const json::object& object, std::string_view key) {
  const json::array* list = ArrayIn(object, key);
  return list == nullptr || list->empty() ? nullptr : list->front().if_object();
}

const json::object* ObjectAt(const json::object& object, std::string_view path) {
  std::size_t slash = path.find('/');
  const json::value* value = object.if_contains(path.substr(0, slash));
  boost::system::error_code error;
  if (value != nullptr && slash != std::string_view::npos)
    value = value->find_pointer(path.substr(slash), error);
  return value == nullptr ? nullptr : value->if_object();
}

std::string TextAt(const json::object& object, std::string_view path) {
  std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return TextIn(object, path);
  const json::object* parent = ObjectAt(object, path.substr(0, slash));
  return parent == nullptr ? "" : TextIn(*parent, path.substr(slash + 1));
}

std::map<std::string, std::string> TextsIn(const json::object* object) {
  std::map<std::string, std::string> texts;
  if (object == nullptr) return texts;
  for (const auto& [key, value] : *object) texts[key] = TextIn(*object, key);
  return texts;
}

json::object ObjectOf(const std::map<std::string, std::string>& texts) {
  json::object object;
  for (const auto& [key, text] : texts) object[key] = text;
  return object;
}

}  // namespace nodepool
