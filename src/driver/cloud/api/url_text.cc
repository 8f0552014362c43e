#include "driver/cloud/api/url_text.h"

#include <fmt/format.h>

#include <cctype>

#include "base/error.h"
#include "base/text.h"
#include "net/http/http_client.h"

namespace nodepool::driver::cloud::api {

std::string PercentEncoded(std::string_view text) {
  std::string result;
  for (unsigned char c : text) {
    if (std::isalnum(c) || c == '-' || c == '_' || c == '.' || c == '~') {
      result += static_cast<char>(c);
    } else {
      result += fmt::format("%{:02X}", c);
    }
  }
  return result;
}

std::string ServiceUrl(std::string url, std::string_view what) {
  if (url.empty()) return url;
  if (!url.starts_with("http://") && !url.starts_with("https://")) {
    throw Error(Verdict::kInvalid,
                fmt::format("{} is no URL with http or https: {}", what, net::UrlForLog(url)));
  }
  while (url.ends_with('/')) url.pop_back();
  return url;
}

std::string LastSegment(const std::string& url) {
  std::size_t slash = url.rfind('/');
  return slash == std::string::npos ? url : url.substr(slash + 1);
}

std::string QueryOf(std::string_view url) {
  std::size_t mark = url.find('?');
  return mark == std::string_view::npos ? "" : std::string(url.substr(mark + 1));
}

std::string ParameterOf(std::string_view url, std::string_view name) {
  for (const std::string& item : Split(QueryOf(url), '&')) {
    std::size_t equals = item.find('=');
    if (equals != std::string::npos && item.substr(0, equals) == name) return item.substr(equals + 1);
  }
  return "";
}

}  // namespace nodepool::driver::cloud::api
