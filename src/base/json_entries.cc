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
