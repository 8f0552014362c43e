#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "driver/cloud/api/paging.h"
#include "drivers/openstack/api/session.h"

namespace nodepool::drivers::openstack {

// The query of the next page of a list, or empty (driver-openstack.md 6.7).
std::string NextQuery(const ApiReply& page, const std::string& collection);

// Takes a std::function because GCC 14.2 crashes on a coroutine of a header that has a pointer to function in
// whose type a type of an unnamed namespace occurs (tools/check-platforms).
template <class T>
Task<driver::cloud::api::Page<T>> ReadPage(Session& session, ApiCall call, std::string collection,
                                           std::function<T(const boost::json::object&)> read) {
  ApiReply reply = co_await session.Call(std::move(call));
  const boost::json::array* entries = ArrayIn(reply.body, collection);
  if (entries == nullptr) {
    throw Error(Verdict::kRetry, "the list of " + collection + " has an unknown form");
  }
  driver::cloud::api::Page<T> page;
  page.bytes = reply.bytes;
  for (const boost::json::value& entry : *entries) {
    if (entry.is_object()) page.items.push_back(read(entry.as_object()));
  }
  if (!entries->empty()) page.next = NextQuery(reply, collection);
  co_return page;
}

// Reads a list page by page, each entry with `read`. Error(kFail) if the pages never end.
template <class T>
Task<std::vector<T>> List(Session& session, ApiCall call, std::string collection,
                          T (*read)(const boost::json::object&)) {
  auto read_page = [&session, call = std::move(call), collection, read](std::string next) {
    ApiCall page_call = call;
    if (!next.empty()) page_call.query = std::move(next);
    return ReadPage<T>(session, std::move(page_call), collection, read);
  };
  return driver::cloud::api::ReadPages<T>(collection, std::move(read_page));
}

}  // namespace nodepool::drivers::openstack
