#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace nodepool {

// Reading members of JSON from outside, which may have any type.

// The empty text when there is no such text; numbers are written out.
std::string TextIn(const boost::json::object& object, std::string_view key);
// 0 when there is no such number.
double NumberIn(const boost::json::object& object, std::string_view key);
bool TruthIn(const boost::json::object& object, std::string_view key);
// Null when there is no such member, or another kind of it.
const boost::json::object* ObjectIn(const boost::json::object& object, std::string_view key);
const boost::json::object* ObjectIn(const boost::json::value& value, std::string_view key);
const boost::json::array* ArrayIn(const boost::json::object& object, std::string_view key);
const boost::json::array* ArrayIn(const boost::json::value& value, std::string_view key);

// JSON from outside that has lists and mappings; beside base/json_fields.h.

// Null: the text is no JSON.
boost::json::value ParsedJson(std::string_view text);

// The objects among the first `most` entries of a list; none where there is no such list. They live as long
// as `object`.
std::vector<const boost::json::object*> ObjectsIn(const boost::json::object& object, std::string_view key,
                                                  std::size_t most = std::numeric_limits<std::size_t>::max());
// The first entry of a list; null: there is none, or it is no object.
const boost::json::object* FirstIn(const boost::json::object& object, std::string_view key);

// What is deep in an object, by the path of keys and indexes there: "networkInterfaces/0/networkIP". As
// TextIn and ObjectIn otherwise.
std::string TextAt(const boost::json::object& object, std::string_view path);
const boost::json::object* ObjectAt(const boost::json::object& object, std::string_view path);

// The members of an object as texts (TextIn); null: there are none.
std::map<std::string, std::string> TextsIn(const boost::json::object* object);

// An object of texts.
boost::json::object ObjectOf(const std::map<std::string, std::string>& texts);

// Reading members of JSON from outside that go into records.

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
