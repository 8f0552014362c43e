#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nodepool::cli {

// Members of the answers of web servers, which may be missing or of any type.

// nullopt: there is no such text.
std::optional<std::string> OptionalTextIn(const boost::json::object& entry, std::string_view key);
// The texts in the list; what else is in it is left out.
std::vector<std::string> TextsIn(const boost::json::object& entry, std::string_view key);

}  // namespace nodepool::cli
