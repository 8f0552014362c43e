#include "cli/answer_fields.h"

#include <boost/json/array.hpp>

#include "base/json_fields.h"

namespace nodepool::cli {

namespace json = boost::json;

std::optional<std::string> OptionalTextIn(const json::object& entry, std::string_view key) {
  const json::value* value = entry.if_contains(key);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return std::string(value->as_string());
}

std::vector<std::string> TextsIn(const json::object& entry, std::string_view key) {
  std::vector<std::string> texts;
  const json::array* list = ArrayIn(entry, key);
  if (list == nullptr) return texts;
  for (const json::value& element : *list) {
    if (element.is_string()) texts.emplace_back(element.as_string());
  }
  return texts;
}

}  // namespace nodepool::cli
