#include "drivers/openstack/paging.h"

namespace nodepool::drivers::openstack {

namespace json = boost::json;

namespace {

std::string QueryOf(std::string_view url) {
  std::size_t mark = url.find('?');
  return mark == std::string_view::npos ? "" : std::string(url.substr(mark + 1));
}

// <https://host/path?marker=x>; rel="next"
std::string NextOfHeader(std::string_view header) {
  std::size_t relation = header.find("rel=\"next\"");
  if (relation == std::string_view::npos) relation = header.find("rel=next");
  if (relation == std::string_view::npos) return "";
  std::size_t open = header.rfind('<', relation);
  std::size_t close = header.find('>', open);
  if (open == std::string_view::npos || close == std::string_view::npos) return "";
  return std::string(header.substr(open + 1, close - open - 1));
}

}  // namespace

std::string NextQuery(const ApiReply& page, const std::string& collection) {
  if (const json::array* links = ArrayIn(page.body, collection + "_links")) {
    for (const json::value& link : *links) {
      if (link.is_object() && TextIn(link.as_object(), "rel") == "next") {
        return QueryOf(TextIn(link.as_object(), "href"));
      }
    }
  }
  if (page.body.is_object()) {
    std::string next = TextIn(page.body.as_object(), "next");
    if (!next.empty()) return QueryOf(next);
  }
  for (const auto& [name, value] : page.headers) {
    if (name == "link") return QueryOf(NextOfHeader(value));
  }
  return "";
}

}  // namespace nodepool::drivers::openstack
