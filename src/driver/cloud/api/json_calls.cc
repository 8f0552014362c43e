#include "driver/cloud/api/json_calls.h"

#include <boost/json/serialize.hpp>

#include "driver/cloud/api/url_text.h"

namespace nodepool::driver::cloud::api {

namespace json = boost::json;

namespace {

json::object TakeObject(ApiReply& reply, const std::string& action) {
  if (!reply.body.is_object()) throw Error(Verdict::kRetry, action + " was answered without an object");
  return std::move(reply.body.get_object());
}

std::string NextPageOf(const json::object& answer, const ListFormat& format) {
  const json::object* link = ObjectIn(answer, format.next);
  return link == nullptr ? TextIn(answer, format.next) : TextIn(*link, "href");
}

}  // namespace

Task<json::object> CallForObject(ApiClient& client, ApiRequest request) {
  std::string action = request.name;
  ApiReply reply = co_await client.CallJson(std::move(request));
  co_return TakeObject(reply, action);
}

void SetBody(const json::object& body, net::HttpCall& call) {
  call.headers.emplace_back("Content-Type", "application/json");
  call.body = json::serialize(body);
}

Task<ListPage> CallForPage(ApiClient& client, ApiRequest request, ListFormat format, std::string next) {
  std::string action = request.name;
  std::string& url = request.call.url;
  bool is_url = *format.parameter == '\0';
  if (!next.empty() && is_url) url = next;
  if (!next.empty() && !is_url)
    url += (QueryOf(url).empty() ? "?" : "&") + std::string(format.parameter) + "=" + PercentEncoded(next);
  ApiReply reply = co_await client.CallJson(std::move(request));
  ListPage page{TakeObject(reply, action), "", reply.bytes};
  std::string fault = format.fault == nullptr ? "" : format.fault(page.answer);
  if (!fault.empty()) throw Error(Verdict::kRetry, action + ": " + fault);
  page.next = NextPageOf(page.answer, format);
  co_return page;
}

}  // namespace nodepool::driver::cloud::api
