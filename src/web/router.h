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

// An endpoint's documentation (open_api.h).
struct ParameterDoc {
  std::string name;
  std::string text;
  JsonType type;
  bool may_repeat = false;
};
struct EndpointDoc {
  std::string summary;  // one sentence
  std::vector<ParameterDoc> parameters;
  // Types of successful answers, by media type.
  std::map<std::string, JsonType> answers;
  // Statuses other than 200, 304 and those of every endpoint.
  std::vector<int> errors;
  std::optional<JsonType> body = std::nullopt;  // the request's body, as JSON
};

// A path that the web server serves. Handlers that do not wait for anything are plain functions, wrapped with
// Pure().
struct Endpoint {
  using Handler = std::function<Task<Response>(Request)>;
  std::string method;
  std::string path;  // exact (operations.md 6)
  Handler handler;
  EndpointDoc doc = {};
  bool takes_any_method = false;  // answered like `method` (operations.md 6.6)
};

Endpoint::Handler Pure(std::function<Response(const Request&)> function);

// Finds the endpoint of a request. HEAD is answered by the handler of GET.
class Router {
 public:
  explicit Router(std::vector<Endpoint> endpoints);

  // 404 for an unknown path; 405, with the path's methods, for a known one.
  Task<Response> Answer(Request request) const;

 private:
  std::map<std::string, std::map<std::string, Endpoint::Handler>> handlers_;  // by path and method
  std::map<std::string, Endpoint::Handler> of_any_method_;                    // by path
};

// An error in the format that the request accepts (operations.md 6.6): text, a page for clients that prefer
// HTML, or {"code", "title", "message"} for clients that prefer JSON; text if none is acceptable.
Response ErrorResponse(const Request& request, int status, std::string message);

}  // namespace nodepool::web
