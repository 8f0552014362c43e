#pragma once

#include <string>
#include <string_view>

namespace nodepool::driver::cloud::api {

// `text` as part of a query or a path: all but letters, digits and "-_.~" as %XX.
std::string PercentEncoded(std::string_view text);

// What follows "?" in a URL, or empty.
std::string QueryOf(std::string_view url);

}  // namespace nodepool::driver::cloud::api
