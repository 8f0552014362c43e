#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json_fields.h"
#include "base/text.h"

// Reading members of JSON from outside that go into records.
namespace nodepool {

inline constexpr std::size_t kLongestField = 300;  // bytes of a name

// The text, or what is left of one that is too long or not UTF-8; the empty text when there is none.
inline std::string ShortTextIn(const boost::json::object& object, std::string_view key) {
  std::string text = TextIn(object, key);
  return text.size() <= kLongestField && IsValidUtf8(text) ? text : Excerpt(text, kLongestField);
}

// A whole number; 0 where there is none that fits.
inline std::int64_t WholeIn(const boost::json::object& object, std::string_view key) {
  const boost::json::value* value = object.if_contains(key);
  const std::int64_t* number = value == nullptr ? nullptr : value->if_int64();
  return number == nullptr ? 0 : *number;
}

}  // namespace nodepool
