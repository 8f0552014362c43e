#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "base/json_fields.h"
#include "driver/cloud/api/api_client.h"
#include "model/node_request.h"
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

// Calls of an API whose answers are JSON objects. Errors: those of ApiClient::CallJson.

// Error(kRetry): the answer is something else.
Task<boost::json::object> CallForObject(ApiClient& client, ApiRequest request);

// The call has this JSON.
void SetBody(const boost::json::object& body, net::HttpCall& call);

// How an API answers with a list.
struct ListFormat {
  const char* items;  // the member with the entries
  const char* next;   // says where the next page is: a text, or an object with the text `href`
  // Of the query, by which the text asks for the next page; empty: the text is the page's URL.
  const char* parameter = "";
  // Why an answer is not all of a page; empty: it is. Null: that does not happen.
  std::string (*fault)(const boost::json::object& answer) = nullptr;
};

// The answer to a request for a page; `next`: what the one before says, empty: it is the first.
struct ListPage {
  boost::json::object answer;
  std::string next;
  std::size_t bytes = 0;
};
Task<ListPage> CallForPage(ApiClient& client, ApiRequest request, ListFormat format, std::string next);

// One page, its objects read by `read`. `next`: what the page before said, first empty.
template <class T>
Task<Page<T>> ReadPageOf(ApiClient& client, ApiRequest request, ListFormat format, std::string next,
                         std::function<T(const boost::json::object&)> read) {
  ListPage page = co_await CallForPage(client, std::move(request), format, std::move(next));
  Page<T> read_page{{}, std::move(page.next), page.bytes};
  AddEntries<T>(ArrayIn(page.answer, format.items), read, read_page);
  co_return read_page;
}

// All pages of a list. A page that fails fails the list, and so does one that is not complete (kRetry). The
// client outlives the call.
template <class T>
Task<std::vector<T>> CallForList(ApiClient& client, ApiRequest request, ListFormat format,
                                 T (*read)(const boost::json::object&)) {
  std::string what = request.name;
  auto read_page = [&client, request = std::move(request), format, read](std::string next) {
    return ReadPageOf<T>(client, request, format, std::move(next), read);
  };
  return ReadPages<T>(std::move(what), std::move(read_page));
}

// Metadata of a machine made from its request: text with fields of the request in braces, as in Python's
// format strings: "{request.tenant_name}", "{request.requestor_data[key]}", "{{" for a brace
// (driver-openstack.md 7.4). Error(kInvalid): a broken template, or a field that does not exist.
std::string FillTemplate(const std::string& text, const RequestId& id, const NodeRequest& request);

}  // namespace nodepool::driver::cloud::api
