#pragma once

#include <boost/system/error_code.hpp>

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

}  // namespace nodepool::net
