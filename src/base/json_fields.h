#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <string_view>

// Reading members of JSON from outside, which may have any type.
namespace nodepool {

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

}  // namespace nodepool
