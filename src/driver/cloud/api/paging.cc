#include "driver/cloud/api/paging.h"

namespace nodepool::driver::cloud::api {

namespace {

std::string NextOf(std::string_view header) {
  std::size_t relation = header.find("rel=\"next\"");
  if (relation == std::string_view::npos) relation = header.find("rel=next");
  if (relation == std::string_view::npos) return "";
  std::size_t open = header.rfind('<', relation);
  std::size_t close = header.find('>', open);
  if (open == std::string_view::npos || close == std::string_view::npos) return "";
  return std::string(header.substr(open + 1, close - open - 1));
}

}  // namespace

std::string NextLink(const net::HttpHeaders& headers) {
  for (const auto& [name, value] : headers) {
    if (name != "link") continue;
    std::string next = NextOf(value);
    if (!next.empty()) return next;
  }
  return "";
}

}  // namespace nodepool::driver::cloud::api
