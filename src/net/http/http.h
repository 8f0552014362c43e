#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "async/task.h"

namespace nodepool::net {

// A request as handlers get it: parsed, and within the server's limits.
struct HttpRequest {
  std::string method = "GET";
  std::string path = "/";                                  // decoded, without the query
  std::vector<std::pair<std::string, std::string>> query;  // parameters, decoded, in their order
  std::map<std::string, std::string> headers;              // names in lower case
  std::string body;
  bool is_from_this_host = false;  // the connection comes over the loopback interface
  std::string peer;                // address of the client, without a port
  // To be called by the handler with the name of a client that has proved who it is, before it changes
  // anything for it, and with an empty name for one that has tried and failed. The server may cut off a
  // stranger's connection, and cancel its handler, in favour of others. May be called as long as the request
  // exists.
  std::function<void(const std::string& name)> prove = [](const std::string&) {};

  // The empty text when it is missing. Of a parameter's values the last one counts.
  const std::string& Header(const std::string& lower_case_name) const;
  const std::string& Parameter(const std::string& name) const;
};

// A body without a known end, sent piece by piece.
class BodyStream {
 public:
  virtual ~BodyStream() = default;
  // Waits for the next piece; null: the body ends here. Called again once the piece is sent. It is cancelled
  // when the client hangs up and when the server stops.
  virtual Task<std::shared_ptr<const std::string>> Next() = 0;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=UTF-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  // besides type and length
  // If one is set, it is sent in place of `body`.
  std::shared_ptr<const std::string> shared_body = nullptr;  // which other answers have, too
  std::shared_ptr<BodyStream> stream = nullptr;

  const std::string& whole_body() const { return shared_body ? *shared_body : body; }
};

// "Not Found" and so on; empty for a code that has no name.
std::string_view HttpReason(int status);

// A response with the text, or the status in words.
HttpResponse PlainResponse(int status, std::string text = "");

// Splits and decodes a request target ("/path?a=b"). One in absolute form ("http://host/path") also sets the
// header Host (RFC 9112, 3.2.2). False: it is not a path, or a %-escape is malformed.
bool ParseTarget(std::string_view target, HttpRequest& request);

// Puts the parameters of the body, where it is a form, in front of those of the query. False: a
// %-escape is malformed.
bool TakeForm(HttpRequest& request);

}  // namespace nodepool::net
