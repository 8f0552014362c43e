#pragma once

#include <memory>

#include "async/loop.h"
#include "net/http/connection.h"
#include "net/http/http.h"
#include "net/http/seats.h"

namespace nodepool::net {

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
