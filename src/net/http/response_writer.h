#pragma once

#include <boost/system/error_code.hpp>
#include <memory>

#include "async/loop.h"
#include "net/http/connection.h"
#include "net/http/http.h"
#include "net/http/request_reader.h"
#include "net/http/seats.h"

namespace nodepool::net {

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
