#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

// JSON from outside that has lists and mappings; beside base/json_fields.h.
namespace nodepool {

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

}  // namespace nodepool
