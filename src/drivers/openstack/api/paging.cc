#include "drivers/openstack/api/paging.h"

#include "driver/cloud/api/url_text.h"

namespace nodepool::drivers::openstack {

namespace json = boost::json;
using driver::cloud::api::QueryOf;

std::string NextQuery(const ApiReply& page, const std::string& collection) {
  if (const json::array* links = ArrayIn(page.body, collection + "_links")) {
    for (const json::value& link : *links) {
      if (link.is_object() && TextIn(link.as_object(), "rel") == "next") {
        return QueryOf(TextIn(link.as_object(), "href"));
      }
    }
  }
  std::string next = page.body.is_object() ? TextIn(page.body.as_object(), "next") : "";
  return QueryOf(next.empty() ? driver::cloud::api::NextLink(page.headers) : next);
}

}  // namespace nodepool::drivers::openstack
