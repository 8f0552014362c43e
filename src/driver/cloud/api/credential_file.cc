#include "driver/cloud/api/credential_file.h"

#include <fmt/format.h>

#include "base/json_fields.h"

namespace nodepool::driver::cloud::api {

std::string Needed(const boost::json::object& object, const char* key) {
  std::string text = TextIn(object, key);
  if (text.empty()) throw Error(Verdict::kInvalid, fmt::format("it has no {}", key));
  return text;
}

std::string UrlIn(const boost::json::object& object, const char* key, const char* otherwise) {
  std::string url = TextIn(object, key);
  if (url.empty()) url = otherwise;
  if (url.empty() || url.starts_with("http://") || url.starts_with("https://")) return url;
  throw Error(Verdict::kInvalid, fmt::format("its {} is no URL with http or https", key));
}

}  // namespace nodepool::driver::cloud::api
