#include "net/http/url.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <cctype>

namespace nodepool::net {

std::optional<Url> Url::Parse(const std::string& text) {
  Url url;
  if (curl_url_set(url.handle_.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) return std::nullopt;
  return url;
}

std::string Url::Part(CURLUPart which, unsigned flags) const {
  char* text = nullptr;
  if (curl_url_get(handle_.get(), which, &text, flags) != CURLUE_OK) return "";
  std::string part(text);
  curl_free(text);
  return part;
}

void Url::RemoveSecrets() {
  for (CURLUPart part :
       {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS, CURLUPART_QUERY, CURLUPART_FRAGMENT}) {
    curl_url_set(handle_.get(), part, nullptr, 0);
  }
}

std::string PercentEncoded(std::string_view text) {
  std::string encoded;
  for (unsigned char c : text) {
    if (std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '~') {
      encoded += static_cast<char>(c);
    } else {
      encoded += fmt::format("%{:02X}", c);
    }
  }
  return encoded;
}

}  // namespace nodepool::net
