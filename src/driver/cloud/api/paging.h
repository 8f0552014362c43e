#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "net/http/http_client.h"

namespace nodepool::driver::cloud::api {

// A page of a list. `next` says where the next page is: a token, a query or a URL, depending on the API;
// empty: this is the last page.
template <class T>
struct Page {
  std::vector<T> items;
  std::string next;
  std::size_t bytes = 0;  // of the cloud's answer
};

// Lists of a cloud that are longer are a fault of the cloud.
inline constexpr std::size_t kMaxPages = 10'000;
inline constexpr std::size_t kMaxItems = 1'000'000;
inline constexpr std::size_t kMaxBytes = std::size_t{128} << 20;

// Reads a list page by page. `read` gets the `next` of the previous page, first an empty text. Error(kFail)
// if the pages form a cycle, or there are too many or too large ones. `what` names the list: "servers".
template <class T>
Task<std::vector<T>> ReadPages(std::string what, std::function<Task<Page<T>>(std::string next)> read) {
  std::vector<T> items;
  std::set<std::string> seen;
  std::string next;
  std::size_t bytes = 0;
  do {
    Page<T> page = co_await read(next);
    bytes += page.bytes;
    std::ranges::move(page.items, std::back_inserter(items));
    next = std::move(page.next);
    if (!next.empty() && !seen.insert(next).second) {
      throw Error(Verdict::kFail, "Endless pagination loop in the list of " + what);
    }
    if (seen.size() >= kMaxPages || items.size() > kMaxItems || bytes > kMaxBytes) {
      throw Error(Verdict::kFail, fmt::format("the list of {} does not end: {} pages with {} entries, {} MiB",
                                              what, seen.size(), items.size(), bytes >> 20));
    }
  } while (!next.empty());
  co_return items;
}

// Adds the objects among an answer's `entries` to the page, each as `read` reads it. Null: there are none.
template <class T>
void AddEntries(const boost::json::array* entries, const std::function<T(const boost::json::object&)>& read,
                Page<T>& page) {
  if (entries == nullptr) return;
  for (const boost::json::value& entry : *entries) {
    if (entry.is_object()) page.items.push_back(read(entry.get_object()));
  }
}

// The URL of the next page from the header "Link" (<https://host/path?marker=x>; rel="next"), or empty.
std::string NextLink(const net::HttpHeaders& headers);

}  // namespace nodepool::driver::cloud::api
