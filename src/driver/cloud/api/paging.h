#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "net/http/http_client.h"

namespace nodepool::driver::cloud::api {

// A part of a list. `next` is where the next part is: a token, a query or a URL, whatever the API has;
// empty: this is the last one.
template <class T>
struct Page {
  std::vector<T> items;
  std::string next;
};

// A list, page by page. `read` gets the `next` of the page before, at first the empty text. Error(kFail)
// when the pages go round in a circle. `what` names the list: "servers".
template <class T>
Task<std::vector<T>> ReadPages(std::string what, std::function<Task<Page<T>>(std::string next)> read) {
  std::vector<T> items;
  std::set<std::string> seen;
  std::string next;
  do {
    Page<T> page = co_await read(next);
    std::ranges::move(page.items, std::back_inserter(items));
    next = std::move(page.next);
    if (!next.empty() && !seen.insert(next).second) {
      throw Error(Verdict::kFail, "Endless pagination loop in the list of " + what);
    }
  } while (!next.empty());
  co_return items;
}

// The URL of the next page by the header "Link" (<https://host/path?marker=x>; rel="next"), or empty.
std::string NextLink(const net::HttpHeaders& headers);

}  // namespace nodepool::driver::cloud::api
