#pragma once

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>

#include "async/loop.h"
#include "base/clock.h"
#include "net/http/connection.h"
#include "net/http/http.h"

namespace nodepool::net {

// The limits of a web server for its peers; beyond them a peer gets an error, or its connection is closed.
// For a connection beyond their number another one is closed (connection.h).
struct HttpLimits {
  std::size_t header_bytes = 16 * 1024;  // 431
  std::size_t body_bytes = 64 * 1024;    // 413
  std::size_t connections = 200;         // of strangers
  std::size_t proven_connections = 200;  // beside them, of peers that have proved who they are
  std::size_t unsent_bytes = 64 << 20;   // of all large answers together that peers have not read; 503
  std::size_t streams = 1500;            // connections with a BodyStream, beside the others; 503
  std::size_t proven_streams = 500;      // beside them
  int requests_per_connection = 1000;
  // For sending a request, from its first byte on, and until the first byte of the first one; for a TLS
  // handshake, from the connection on.
  Duration request_time = std::chrono::seconds(10);
  Duration idle_time = std::chrono::seconds(30);    // between requests of a connection
  Duration answer_time = std::chrono::seconds(30);  // for taking an answer, or a piece of a stream
};

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

// Sends the response, of one with a stream only the head, and releases it. The seat notes when the peer takes
// bytes.
Task<boost::system::error_code> WriteResponse(Loop& loop, Connection& connection, Seats::Ptr seat,
                                              HttpResponse response, Manner manner);

// The head of an answer (RFC 9112, 4), up to the empty line.
std::string HeadOf(const HttpResponse& response, const Manner& manner);

// A stream whose head has been sent.
struct OpenStream {
  std::shared_ptr<BodyStream> body;
  Seats::Ptr seat;         // notes when the peer takes pieces
  bool is_chunked = true;  // false for HTTP/1.0: the body ends with the connection
};

// Sends the pieces until the stream ends or the peer cannot be reached. A peer that does not take a piece
// within `answer_time` is hung up on.
Task<> SendPieces(Loop& loop, Connection& connection, OpenStream stream, Duration answer_time);

}  // namespace nodepool::net
