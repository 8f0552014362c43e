#pragma once

#include <boost/json/object.hpp>
#include <set>
#include <string>
#include <vector>

#include "drivers/openstack/json_fields.h"
#include "drivers/openstack/session.h"

namespace nodepool::drivers::openstack {

// The query of the next page of a list, or empty (driver-openstack.md 6.7).
std::string NextQuery(const ApiReply& page, const std::string& collection);

// A list, page by page, each entry as `read` understands it. Error(kFail) when the
// pages never end.
template <class T>
Task<std::vector<T>> List(Session& session, ApiCall call, std::string collection,
                          T (*read)(const boost::json::object&)) {
  std::vector<T> items;
  std::set<std::string> seen;
  while (true) {
    ApiCall page_call = call;
    ApiReply page = co_await session.Call(std::move(page_call));
    const boost::json::array* entries = ArrayIn(page.body, collection);
    if (entries == nullptr) {
      throw Error(Verdict::kRetry, "the list of " + collection + " has an unknown form");
    }
    for (const boost::json::value& entry : *entries) {
      if (entry.is_object()) items.push_back(read(entry.as_object()));
    }
    std::string next = NextQuery(page, collection);
    if (next.empty() || entries->empty()) co_return items;
    if (!seen.insert(next).second) {
      throw Error(Verdict::kFail, "Endless pagination loop in the list of " + collection);
    }
    call.query = std::move(next);
  }
}

}  // namespace nodepool::drivers::openstack
