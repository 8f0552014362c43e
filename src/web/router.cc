#include "web/router.h"

#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/text.h"

namespace nodepool::web {
namespace {

Task<Response> Call(std::function<Response(const Request&)> function, Request request) {
  co_return function(request);
}

Task<Response> Ready(Response response) { co_return response; }

}  // namespace

Endpoint::Handler Pure(std::function<Response(const Request&)> function) {
  return [function = std::move(function)](Request request) { return Call(function, std::move(request)); };
}

Router::Router(std::vector<Endpoint> endpoints) {
  for (Endpoint& endpoint : endpoints) {
    handlers_[endpoint.path][endpoint.method] = std::move(endpoint.handler);
  }
}

Task<Response> Router::Answer(Request request) const {
  auto methods = handlers_.find(request.path);
  if (methods == handlers_.end()) {
    return Ready(ErrorResponse(request, 404, fmt::format("There is nothing at {}.", Excerpt(request.path))));
  }
  auto handler = methods->second.find(request.method == "HEAD" ? "GET" : request.method);
  if (handler != methods->second.end()) return handler->second(std::move(request));
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
  if (request.Header("accept") == "application/json") {
    response.content_type = "application/json";
    boost::json::object body{{"message", message}, {"code", title}, {"title", net::HttpReason(status)}};
    response.body = boost::json::serialize(body);
  } else {
    response.body = fmt::format("{}\n\n{}\n", title, message);
  }
  return response;
}

}  // namespace nodepool::web
