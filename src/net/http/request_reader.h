#pragma once

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>

#include "async/loop.h"
#include "net/http/connection.h"
#include "net/http/http.h"
#include "net/http/http_limits.h"

namespace nodepool::net {

// How the answer to a request is to be sent.
struct Manner {
  bool is_head = false;
  bool keeps_alive = false;
  bool knows_chunks = true;  // false for HTTP/1.0
};

// What came of waiting for a connection's next request: a request, or the answer to what is none, or nothing:
// the connection is to be closed.
struct Received {
  std::optional<HttpRequest> request;
  std::optional<HttpResponse> refusal;
  bool speaks_tls = false;  // the refused bytes are the beginning of a TLS connection
  Manner manner;
};

// Reads the requests of a connection one after the other, within the limits. All arguments outlive it.
class RequestReader {
 public:
  RequestReader(Loop& loop, Connection& connection, const HttpLimits& limits);

  // To be called again once the answer is sent: what the peer sends meanwhile stays with the system.
  Task<Received> Next();

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  Task<bool> HasBegun();
  Task<boost::system::error_code> ReadHead(Parser& parser);
  Task<boost::system::error_code> ReadBody(Parser& parser);

  Loop& loop_;
  Connection& connection_;
  const HttpLimits& limits_;
  boost::beast::flat_buffer buffer_;
  int read_ = 0;  // requests up to now
};

}  // namespace nodepool::net
