#include "web/router.h"

#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/text.h"
#include "web/lists/negotiation.h"
#include "web/own_host.h"

namespace nodepool::web {
namespace {

Task<Response> Call(std::function<Response(const Request&)> function, Request request) {
  co_return function(request);
}

Task<Response> Ready(Response response) { co_return response; }

std::string HtmlOf(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string Page(const std::string& title, const std::string& message) {
  return fmt::format(
      "<html>\n<head><title>{0}</title></head>\n<body>\n<h1>{0}</h1>\n<p>{1}</p>\n</body>\n</html>\n", title,
      HtmlOf(message));
}

}  // namespace

Endpoint::Handler Pure(std::function<Response(const Request&)> function) {
  return [function = std::move(function)](Request request) { return Call(function, std::move(request)); };
}

Router::Router(std::vector<Endpoint> endpoints) {
  for (Endpoint& endpoint : endpoints) {
    if (endpoint.takes_any_method) of_any_method_[endpoint.path] = endpoint.handler;
    handlers_[endpoint.path][endpoint.method] = std::move(endpoint.handler);
  }
}

Task<Response> Router::Answer(Request request) const {
  auto methods = handlers_.find(request.path);
  if (methods == handlers_.end()) {
    return Ready(ErrorResponse(request, 404, fmt::format("There is nothing at {}.", Excerpt(request.path))));
  }
  auto handler = methods->second.find(request.method == "HEAD" ? "GET" : request.method);
  if (handler != methods->second.end()) {
    if (handler->first != "GET" && !IsForThisHost(request))
      return Ready(ErrorResponse(request, 403, "Web pages of others may change nothing here."));
    return handler->second(std::move(request));
  }
  if (auto any = of_any_method_.find(request.path); any != of_any_method_.end()) {
    if (!net::TakeForm(request)) return Ready(ErrorResponse(request, 400, "The form is malformed."));
    return any->second(std::move(request));
  }
  std::vector<std::string> allowed;
  for (const auto& [method, found] : methods->second) {
    allowed.push_back(method);
    if (method == "GET") allowed.push_back("HEAD");
  }
  Response response =
      ErrorResponse(request, 405, fmt::format("{} takes {}.", request.path, Join(allowed, ", ")));
  response.headers.emplace_back("Allow", Join(allowed, ", "));
  return Ready(std::move(response));
}

Response ErrorResponse(const Request& request, int status, std::string message) {
  Response response;
  response.status = status;
  std::string title = fmt::format("{} {}", status, net::HttpReason(status));
  static constexpr std::string_view kOffers[] = {"text/plain", "text/html", "application/json"};
  std::string_view type = ChooseType(AcceptOf(request), kOffers).value_or(kOffers[0]);
  if (type == "application/json") {
    response.content_type = type;
    boost::json::object body{{"message", message}, {"code", title}, {"title", net::HttpReason(status)}};
    response.body = boost::json::serialize(body);
  } else if (type == "text/html") {
    response.content_type = "text/html; charset=UTF-8";
    response.body = Page(title, message);
  } else {
    response.body = fmt::format("{}\n\n{}\n", title, message);
  }
  return response;
}

}  // namespace nodepool::web
