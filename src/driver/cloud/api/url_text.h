#pragma once

#include <string>
#include <string_view>

namespace nodepool::driver::cloud::api {

// `text` as part of a query or a path: all but letters, digits and "-_.~" as %XX.
std::string PercentEncoded(std::string_view text);

// The address of a service as somebody has configured it, without slashes at its end; empty stays empty.
// Error(kInvalid): it is no URL with http or https; `what` names it in the message.
std::string ServiceUrl(std::string url, std::string_view what);

// What follows the last slash of a resource's URL or path, its name: "zone-a" of "https://host/zones/zone-a".
std::string LastSegment(const std::string& url);

// What follows "?" in a URL, or empty.
std::string QueryOf(std::string_view url);

// What follows `name=` in a URL's query, as it is there, or empty.
std::string ParameterOf(std::string_view url, std::string_view name);

}  // namespace nodepool::driver::cloud::api
