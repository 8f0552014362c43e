#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_fields.h"
#include "driver/cloud/api/api_client.h"
#include "driver/cloud/api/paging.h"

// Calls of an API whose answers are JSON objects. Errors: those of ApiClient::CallJson.
namespace nodepool::driver::cloud::api {

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

}  // namespace nodepool::driver::cloud::api
