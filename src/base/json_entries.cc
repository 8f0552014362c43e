#include "base/json_entries.h"

#include <algorithm>
#include <boost/json/parse.hpp>

#include "base/json_fields.h"

namespace nodepool {

namespace json = boost::json;

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
