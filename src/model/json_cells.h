#pragma once

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <vector>

// Values of records as listings and the web show them; records themselves are written
// by their own files.
namespace nodepool {

template <class Id>
boost::json::array JsonNames(const std::vector<Id>& ids) {
  boost::json::array names;
  for (const Id& id : ids) names.emplace_back(id.value);
  return names;
}

inline boost::json::value JsonText(const std::optional<std::string>& text) {
  return text ? boost::json::value(*text) : boost::json::value();
}

}  // namespace nodepool
