#include "net/http/http_client.h"

#include "net/http/url.h"

namespace nodepool::net {

const std::string& HttpReply::Header(std::string_view lower_case_name) const {
  static const std::string empty;
  for (const auto& [name, value] : headers) {
    if (name == lower_case_name) return value;
  }
  return empty;
}

std::string UrlForLog(const std::string& text) {
  std::optional<Url> url = Url::Parse(text);
  if (!url) return "(no URL)";
  url->RemoveSecrets();
  return url->text();
}

}  // namespace nodepool::net
