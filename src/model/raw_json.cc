#include "model/raw_json.h"

#include <charconv>

#include "model/json.h"

namespace nodepool {

RawJson::RawJson(Tag, const boost::json::value& value) {
  if (!value.is_null()) text_ = WriteJson(value);
}

RawJson RawJson::OfText(std::string_view valid) {
  RawJson json;
  if (valid != "null") json.text_ = std::string(valid);
  return json;
}

boost::json::value RawJson::value() const { return JsonValueOf(text()); }

std::optional<std::int64_t> RawJson::integer() const {
  std::string_view written = text();
  std::int64_t number = 0;
  auto [end, error] = std::from_chars(written.data(), written.data() + written.size(), number);
  bool is_integer = error == std::errc() && end == written.data() + written.size();
  return is_integer ? std::optional(number) : std::nullopt;
}

}  // namespace nodepool
