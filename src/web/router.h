#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "async/task.h"
#include "net/http/http.h"
#include "web/api/json_type.h"

namespace nodepool::web {

using Request = net::HttpRequest;
using Response = net::HttpResponse;

// What documents say of an endpoint (open_api.h).
struct ParameterDoc {
  std::string name;
  std::string text;
  JsonType type;
  bool may_repeat = false;
};
struct EndpointDoc {
  std::string summary;  // one sentence
  std::vector<ParameterDoc> parameters;
  // Of a good answer, by media type.
  std::map<std::string, JsonType> answers;
  // Those beside 200, 304, and what every endpoint may answer.
  std::vector<int> errors;
  std::optional<JsonType> body = std::nullopt;  // what is to be sent, as JSON
};

// Something the web server offers. Handlers that need no input or output of their own
// are plain functions, made with Pure().
struct Endpoint {
  using Handler = std::function<Task<Response>(Request)>;
  std::string method;
  std::string path;  // exact (operations.md 6)
  Handler handler;
  EndpointDoc doc = {};
  bool takes_any_method = false;  // and answers as to `method` (operations.md 6.6)
};

Endpoint::Handler Pure(std::function<Response(const Request&)> function);

// Finds the endpoint of a request. HEAD is answered by the handler of GET.
class Router {
 public:
  explicit Router(std::vector<Endpoint> endpoints);

  // 404 for an unknown path, 405 with the methods there are for a known one.
  Task<Response> Answer(Request request) const;

 private:
  std::map<std::string, std::map<std::string, Endpoint::Handler>> handlers_;  // by path and method
  std::map<std::string, Endpoint::Handler> of_any_method_;                    // by path
};

// As the request accepts it (operations.md 6.6): as text, as a page for who prefers HTML, or as
// {"code", "title", "message"} for who prefers JSON; as text also when none is acceptable.
Response ErrorResponse(const Request& request, int status, std::string message);

}  // namespace nodepool::web
