#pragma once

#include <boost/json/value.hpp>
#include <string>

namespace nodepool::web {

// Appends the compact text of a value, as boost::json::serialize() makes it; at least as
// quick for the short values that answers are made of.
void AppendJson(std::string& out, const boost::json::value& value);

}  // namespace nodepool::web
